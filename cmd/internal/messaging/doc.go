// Package messaging is the commands that do by hand what an AMQP client does (publish, get, declare, bind, unbind, delete), and those that
// show which clients there are (consumers, connections, channels).
//
// They go over the management API, as all commands do, and not over AMQP: it is the address that a context already has, it goes through the
// proxies that let the dashboard through, and a user with the tag management is enough. A publish is answered when the broker would have
// confirmed it, so nothing is less safe.
package messaging
