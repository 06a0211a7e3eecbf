// Package access knows who may do what: users with RabbitMQ's password hashes
// and tags, permissions on the names of exchanges and queues, topic permissions,
// limits, and how to slow down whoever guesses passwords without keeping out who knows
// one. It is pure: no lock, no clock, no I/O; package broker keeps the accounts and asks.
//
// # Permissions
//
// A user has in a virtual host three regular expressions: names he may configure
// (declare, delete), write (publish, bind to) and read (consume, purge, bind from).
// They match anywhere in a name unless anchored; the empty one matches nothing but
// the empty name, as "^$" does (RabbitMQ: Access Control); package broker/pattern
// matches them. A match that takes too long, some 10 ms, is none; whoever asks waits
// for it with no lock held. The default exchange goes by the name amq.default.
//
// On a topic exchange the routing key may be restricted as well. {username} and
// {vhost} in such an expression stand for the user's own, taken literally.
//
// # Passwords
//
// Stored as RabbitMQ stores them: four octets of salt, then SHA-256, SHA-512 or
// MD5 over salt and password. New ones are SHA-256, so that exported definitions
// work elsewhere; the others are there for imported ones.
package access
