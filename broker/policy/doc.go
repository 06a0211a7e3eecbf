// Package policy computes the settings of queues and exchanges: from the arguments with which they are declared, and from
// policies. It says what a policy may set, what it applies to, and what holds if several apply to the same one
// (RabbitMQ: Policies, Operator Policies).
//
//	declared arguments ─┐
//	policy ─────────────┼─► what holds
//	operator policy ────┘
//
// Of the policies that match a queue or an exchange, only the one with the highest
// priority counts; the same goes for operator policies. Where both kinds set a limit, the
// lower one holds; otherwise the operator's value does (merge). The result is then combined
// with what was declared: the lower of two limits holds, otherwise the declared value (Apply).
// keys is the table of all settings, with what each accepts and does.
//
// A Change says which policy governs a name after a change, and matches no pattern with a name
// twice.
//
// Settings are a queue's arguments, parsed (ParseQueue), and what its policies make of them (Definition.Apply). A Settings is
// not changed once it is in force; a change of policies makes a new one. The settings that come with an error leave out what
// is invalid: a queue that an older version accepted is restored with them.
//
// The texts of errors are RabbitMQ's, and the first mistake in RabbitMQ's order counts. Keys of later versions that change what Curfew does
// are accepted, too. Keys that only tell a cluster where to put a queue are accepted and
// remembered where RabbitMQ accepts them.
//
// Patterns are those of Go's regexp, with a little look-ahead (Pattern).
//
// The package is pure, and what it returns is never changed afterwards, so it is safe for
// concurrent use.
package policy
