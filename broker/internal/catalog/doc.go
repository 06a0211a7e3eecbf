// Package catalog is what outlives a restart beside the messages: virtual hosts, users and
// permissions, policies, durable exchanges and queues, and the bindings between them. Each is a
// definition of the store, JSON under a key that begins with its kind.
//
// Records are the definitions as they are written; Read gathers them when a broker starts, from
// the one document of older versions too. A Catalog tells the store of changes, or nobody where
// nothing is kept and while what was kept is put back. Changes are those that one critical
// section makes: the store hears of them in one call, in the order in which they happened, so
// what a crash leaves fits together.
//
// Forms and keys are compatible with every earlier version. A form that an older Curfew would
// misread needs a kind of its own.
//
// Left to others: what a definition means, and who holds which lock while it changes.
package catalog
