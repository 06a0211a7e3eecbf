// Package accounts keeps the users, their permissions and topic permissions, authenticates users
// and checks what they may do.
//
// A connection logs in (Authenticate, Identify) and checks the Rights of its user for each
// operation. Rights remember what was granted until users or permissions change. Package access
// has the rules; users and permissions are kept here, under one lock that is a leaf.
//
// What is granted takes effect once it is on disk. What is revoked is gone at once; if that cannot
// be saved, the caller gets an error, and a restart restores it. Whoever changes accounts holds the
// administrators' lock (Options.Admin) until the change is saved. While passwords are being guessed,
// answers take longer, but a right password is never refused because of wrong ones.
//
// Left to others: which virtual hosts exist, closing the connections of a deleted user, and which
// permissions an operation needs (package broker).
package accounts
