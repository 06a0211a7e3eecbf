// Package session keeps who is logged in: a session is a random cookie, stored here as its hash.
//
// A session holds a user's name and stamp. What they mean is decided above: whoever finds a
// session compares its stamp with the user's. Sessions end after half a day. Their number is
// bounded, and nothing is kept across a restart.
//
// A change needs a token as well, which only pages made for the user have.
package session
