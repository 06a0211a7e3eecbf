// Package connections is the pages of connections and consumers: the clients, what they hold and for how long, and the form that closes a
// connection.
package connections
