// Package access decides who may do what: users with RabbitMQ's password hashes and tags,
// permissions on the names of exchanges and queues, topic permissions and limits. It also
// slows down password guessing without locking out the users who know their password. It is
// pure: no lock, no clock, no I/O. Package broker keeps the accounts and asks.
//
// # Permissions
//
// For each virtual host a user has three regular expressions: for the names that the user
// may configure (declare, delete), write (publish, bind to) and read (consume, purge, bind
// from). They match anywhere in a name unless they are anchored. The empty expression
// matches only the empty name, like "^$" (RabbitMQ: Access Control). Package broker/policy
// does the matching. An expression that an earlier version accepted and that is not valid now
// grants nothing. The default exchange is called amq.default here.
//
// On a topic exchange the routing key may be restricted as well. In such an expression
// {username} and {vhost} stand for the names of the user and the virtual host, taken
// literally.
//
// # Passwords
//
// Password hashes have RabbitMQ's form: four octets of salt, then SHA-256, SHA-512 or MD5
// of the salt and the password. New hashes use SHA-256, so that exported definitions work
// elsewhere. The other algorithms exist for imported hashes. With a client certificate, part of its subject is the user's
// name (NameFrom).
package access
