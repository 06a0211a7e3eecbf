// Package servicebus has what Azure Service Bus adds to AMQP 1.0: shared access signatures, the requests
// to $cbs and $management with their answers, lock tokens as its clients have them, and the entities of
// the emulator's Config.json, which Config.Declare makes. Package server carries the requests out.
//
// # What an entity is
//
//	queue Q                      the queue Q
//	Q/$DeadLetterQueue           its dead-letter sub-queue
//	topic T                      the exchange T
//	T/Subscriptions/S            a queue of that name, bound to the exchange
//	  .../$DeadLetterQueue       its dead-letter sub-queue
//
// Any queue can be an entity, whoever has declared it. Without x-lock-duration its deliveries have no
// locks, and without x-delivery-deadline its messages have no enqueued time; Entity.Args has both.
//
// # What lasts
//
// What the broker keeps: messages, their numbers and failed deliveries, scheduled messages. Locks end with
// the process, and their messages are delivered again. Tokens end with the connection.
package servicebus
