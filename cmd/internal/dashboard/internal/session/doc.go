// Package session keeps the sessions of users who are logged in: a session is a random cookie, stored here as its hash.
//
// A session holds a user's name and stamp. The caller decides what they mean, and compares the
// stamp with the user's. Sessions end after half a day. Their number is
// bounded, and nothing is kept across a restart.
//
// A change needs a token as well, which only pages made for the user have.
package session
