// Package messaging is the commands that do by hand what an AMQP client does (publish, get, declare, bind, unbind, delete), and those that
// list the clients (consumers, connections, channels).
//
// Like all commands, they use the management API and not AMQP: its address is known already, it works through the same proxies as the
// dashboard, and a user with the tag management is enough. A publish is answered when the broker would have confirmed it, so it is just as safe.
package messaging
