// Package declare executes what clients ask for about queues, exchanges and bindings: the methods of AMQP 0-9-1 (Declarer.Execute), and
// the requests of AMQP 1.0 to /management (Manage). Permissions are asked for before anything is told. It does no I/O of its own.
package declare
