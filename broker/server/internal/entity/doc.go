// Package entity carries out what clients of Azure Service Bus ask the $management of an entity for:
// peeking, scheduling, renewing and settling by lock token, deferring and receiving what was deferred.
//
// # Deferred messages
//
// A deferred message is set aside in a queue of its own beside the queue that it was received from, with
// its number and its deadline. It enters that queue in the transaction that settles it in the first, so
// a crash neither loses nor doubles it. It can only be received by its number. When it expires, or is
// rejected, it goes to the dead letters of the first queue.
package entity
