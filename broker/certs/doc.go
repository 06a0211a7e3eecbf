// Package certs makes TLS configurations from files that are replaced while they
// are in use, and reads a user's name out of a client's certificate.
//
// A handshake looks at the files at most once a second. When they have changed it
// uses the new ones from then on; connections that are open stay as they are. Files
// that cannot be read, or do not fit one another (half of a replacement, say),
// leave the old ones in use, which is logged once. TLS 1.2 is the least.
//
// Left to others: listening (broker/server, broker/management), who the user is
// and what he may do (broker).
package certs
