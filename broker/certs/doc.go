// Package certs makes TLS configurations from files that may be replaced while they are in
// use, and reads the user name from a client certificate.
//
// Handshakes check the files at most once a second. If the files have changed, later
// handshakes use the new ones; open connections stay as they are. If the files cannot be
// read or do not fit together (because only half of them has been replaced, for example),
// the old ones stay in use, and that is logged once. The minimum is TLS 1.2.
//
// Left to others: listening (broker/server, broker/management), who the user is and what
// the user may do (broker).
package certs
