// Package feed carries what happens to deadlines, in order, from the queues to whoever keeps a schedule of them.
//
// It is bounded and never waits. When it is full, events are dropped; its reader is told so, and takes a snapshot instead.
package feed
