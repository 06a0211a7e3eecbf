// Package queueargs reads the arguments with which a queue, an exchange or a consumer is declared. It
// only computes: it locks, stores and looks up nothing.
//
// Settings are a queue's arguments, parsed. Package policy combines them with the policies that apply to
// the queue. A Settings is not changed once it is in force; a change of policies makes a new one.
//
// Errors are RabbitMQ's, word for word, and the first mistake in RabbitMQ's order counts. The
// settings that come with an error leave out what is invalid: a queue that an older version
// accepted is restored with them.
//
// Left to others: what the settings mean for a message (package queue and the broker), which
// policy applies to a queue, and what it sets (package policy), and the names of queues and exchanges (the broker).
package queueargs
