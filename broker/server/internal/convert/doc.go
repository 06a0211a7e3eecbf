// Package convert turns messages of AMQP 1.0 into those of 0-9-1 and back, as RabbitMQ 4 does. It does no I/O.
//
// # What is stored
//
// A message that came over AMQP 1.0 is stored as one of 0-9-1, so that queues, deadlines, routing and
// consumers of 0-9-1 need to know nothing of 1.0. Its body is the content of its data section; a body
// of any other kind is stored as its sections, with the type amqp-1.0 (as RabbitMQ 3's plugin did). What
// the bare message has in front of that is kept in the header x-amqp-1.0-head, unless a consumer of 1.0
// would get the same octets without; a footer behind data is in the header x-amqp-1.0-footer. So the bare
// message goes back to a consumer of 1.0 octet by octet: it is that header, the body and the footer. The price is
// that properties are stored twice, and that consumers of 0-9-1 see those headers. A journal of another format would have avoided both, and would not have been
// read by the version before.
//
// # What crosses
//
//	1.0                                     0-9-1
//	header durable, priority, ttl           delivery-mode, priority, expiration
//	header delivery-count, first-acquirer   failed deliveries, redelivered (to a consumer of 1.0 only)
//	message-id, correlation-id              the same: a number as its digits, a UUID as urn:uuid:...; one that is binary or long
//	                                        as header x-message-id, x-correlation-id
//	reply-to /queues/Q                      reply-to Q
//	user-id, content-type, -encoding        the same
//	creation-time (ms), group-id            timestamp (s), app-id
//	absolute-expiry-time                    header x-expires-at, in a message without ttl that is not of Service Bus
//	application-properties                  headers
//	message annotations x-*                 headers x-*
//	annotations x-basic-type, x-cc          type, header CC
//	to, subject, reply-to-group-id, footer  in what is kept only, or in the sections that are the body
//
// RabbitMQ 4.3.6 was recorded, type by type, and is held against this (integration/crossing). To a client of Service Bus a reply-to is a
// plain name, and an id a plain text.
package convert
