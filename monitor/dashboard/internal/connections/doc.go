// Package connections is the pages of connections and consumers: the clients, what they hold and for how long, and how to end a
// connection.
package connections
