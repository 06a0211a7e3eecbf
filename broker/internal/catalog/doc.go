// Package catalog is what survives a restart besides the messages: virtual hosts, users and
// permissions, policies, durable exchanges and queues, and the bindings between them. Each is a
// definition of the store, JSON under a key that begins with its kind.
//
// records.go has the definitions as they are written. Read collects them when a broker starts, also
// from the single document of older versions. A Catalog writes changes to the store, except where
// nothing is kept and while a broker is being restored. Changes are those of one critical section:
// they are written in one call, in the order in which they happened, so that what a crash leaves is
// consistent.
//
// Forms and keys are compatible with every earlier version. A form that an older Curfew would
// misread needs a kind of its own.
//
// Functions whose names end in Locked are called with the lock held that guards what the definition
// describes.
//
// Left to others: what a definition means, and which lock guards it.
package catalog
