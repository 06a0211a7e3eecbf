// Package accounts keeps the users, their permissions and topic permissions, and says who logs
// in and what a user may do.
//
// A connection logs in (Authenticate, Identify) and asks the Rights of its user for each thing
// it does. Rights remember what was granted until users or permissions change. What the rules
// are is package access's; here they are kept, under one lock that is a leaf.
//
// What is given holds once it is on disk; what is taken away is gone at once, and if that cannot
// be saved, a restart brings it back and the caller is told. Whoever changes accounts holds the
// administrators' lock (Options.Admin) until the change is saved. Where passwords are guessed,
// answers take longer; a right password is never refused for what others guessed.
//
// Left to others: which virtual hosts there are, closing the connections of a deleted user, and
// the permissions that a thing needs (package broker).
package accounts
