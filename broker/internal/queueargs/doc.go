// Package queueargs reads what a queue, an exchange or a consumer is declared with: its arguments,
// and what policies add to them. A label and values go in, values come out; nothing is locked,
// kept or looked up.
//
// Settings are a queue's arguments, understood. Under gives those that hold where a policy
// governs the queue as well: of two limits the lower, else what was declared (RabbitMQ:
// Policies). A Settings is not changed once it is in force; a change of policies makes another.
//
// Errors are RabbitMQ's, word for word, and the first mistake in RabbitMQ's order counts. The
// settings that come with an error are those without what is wrong: a queue that an older
// version took comes back with them.
//
// Left to others: what the settings mean for a message (package queue and the broker), which
// policy governs a queue (package policy), and the names of things (the broker).
package queueargs
