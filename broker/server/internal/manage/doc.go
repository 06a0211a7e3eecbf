// Package manage executes what clients ask for besides sending and receiving: about queues, exchanges and bindings, the methods of
// AMQP 0-9-1 (Declarer.Execute) and the requests of AMQP 1.0 to /management (Manage); and what clients of Azure Service Bus ask
// the $management of an entity for: peeking, scheduling, renewing and settling by lock token, deferring and receiving what was
// deferred (Entity.Manage). Permissions are asked for before anything is told. It does no I/O of its own.
//
// # Deferred messages
//
// A deferred message is set aside in a queue of its own beside the queue that it was received from, with
// its number and its deadline. It enters that queue in the transaction that settles it in the first, so
// a crash neither loses nor doubles it. It can only be received by its number. When it expires, or is
// rejected, it goes to the dead letters of the first queue.
package manage
