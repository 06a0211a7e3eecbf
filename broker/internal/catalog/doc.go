// Package catalog is what survives a restart besides the messages: virtual hosts, users and
// permissions, policies, durable exchanges and queues, and the bindings between them. Each is a
// definition of the store, JSON under a key that begins with its kind.
//
// records.go has the definitions as they are written. Read collects them when a broker starts. A Catalog writes changes to the store, except where
// nothing is kept and while a broker is being restored. The changes of one critical section
// are written in one call, in the order in which they happened, so that what a crash leaves is
// consistent.
//
// Forms and keys are compatible with every earlier release. A form that an older Curfew would
// misread needs a kind of its own.
//
// Functions whose names end in Locked are called with the lock held that guards what the definition
// describes.
//
// # Accounts
//
// Accounts are the users, their permissions and topic permissions as they are now: they authenticate users and check what these
// may do.
//
// A connection logs in (Authenticate, Identify) and checks the Rights of its user for each
// operation. Rights remember what was granted until users or permissions change. Package access
// has the rules; users and permissions are kept here, under one lock that is a leaf.
//
// What is granted takes effect once it is on disk. What is revoked is gone at once; if that cannot
// be saved, the caller gets an error, and a restart restores it. Whoever changes accounts holds the
// administrators' lock (AccountsOptions.Admin) until the change is saved. While passwords are being guessed,
// answers take longer, but a right password is never refused because of wrong ones.
//
// Left to others: what a definition means, and which lock guards it; which virtual hosts exist, closing the connections of a
// deleted user, and which permissions an operation needs (package broker).
package catalog
