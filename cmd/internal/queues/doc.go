// Package queues is commands about queues and their messages: curfew queue, curfew history, and curfew dlq for dead letters.
// Others do by hand what an AMQP client does (publish, get, declare, bind, unbind, delete).
//
// They use the management API of a running Curfew and not AMQP: its address is known already, it works through the same proxies as the
// dashboard, and a user with the tag management is enough. A publish is answered when the broker would have confirmed it, so it is just as safe.
package queues
