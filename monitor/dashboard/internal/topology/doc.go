// Package topology is the pages that declare and delete queues, exchanges and bindings, and that publish and get messages.
package topology
