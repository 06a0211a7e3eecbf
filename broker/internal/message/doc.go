// Package message reads what the properties and headers of a message mean to the broker, and
// writes what the broker adds to them: times to live and instants, further routing keys, the
// history of its deaths, failed deliveries, the context of its trace.
//
// It works on values: property lists as they come off the wire or out of the store, tables, and
// the present instant, which comes in. What cannot be read is refused with RabbitMQ's text. The
// first death of a message is written straight into its property list, without an allocation, in
// the octets that the general way would give.
//
// A publisher's history of deaths is not believed: x-death counts from the first death here
// (RabbitMQ 4.0).
//
// Left to others: routing by the keys that were read (the broker), and when a message that says
// so expires (package queue).
package message
