// Package message reads the properties and headers of a message that the broker acts on, and
// writes those that it adds: times to live and instants, further routing keys, the death history,
// failed deliveries, the trace context.
//
// It works on values: property lists as they come off the wire or out of the store, tables, and
// the present instant, which the caller passes. What cannot be read is refused with RabbitMQ's text.
// The first death of a message is written directly into its property list, without an allocation,
// in the same octets as by the general way.
//
// A publisher's own death history is ignored: x-death counts from the first death here (RabbitMQ
// 4.0).
//
// Left to others: routing by the keys that were read (the broker), and expiring messages (package
// queue).
package message
