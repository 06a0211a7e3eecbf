// Package topology has the pages about what is in a broker besides messages that died: queues, exchanges and bindings with their forms,
// messages to publish and to get, connections and consumers, and policies, virtual hosts and users.
package topology
