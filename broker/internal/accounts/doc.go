// Package accounts keeps the users, their permissions and topic permissions, and says who logs
// in and what a user may do.
//
// A connection logs in (Authenticate, Identify) and asks the Rights of its user for each thing
// it does. Rights remember what was granted until users or permissions change. Package access
// has the rules; users and permissions are kept here, under one lock that is a leaf.
//
// What is given holds once it is on disk. What is taken away is gone at once; if that cannot be
// saved, the caller is told, and a restart brings it back. Whoever changes accounts holds the
// administrators' lock (Options.Admin) until the change is saved. Where passwords are guessed,
// answers take longer, but a right password is never refused because of what others guessed.
//
// Left to others: which virtual hosts there are, closing the connections of a deleted user, and
// the permissions that a thing needs (package broker).
package accounts
