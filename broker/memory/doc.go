// Package memory counts what clients have the broker hold besides messages in queues:
// unfinished publishes, channels, consumers and their arguments, what waits to be sent,
// bodies of HTTP requests. All of it is drawn from one Budget, each connection and each
// request on an Account of its own, before it is read or kept.
//
// When a Budget is used up, the account gives way that holds most among those of the user
// who holds most: who floods pays for it, and others go on. That may be the one that asks.
//
// Messages in queues are not counted here. They are what the memory limit is for, which
// is measured (broker.Gate); a Budget is a small share of that limit.
package memory
