// Package feed carries what happens to deadlines, in order, from the queues to the one who keeps a schedule of them.
//
// It is bounded and never waits. When it is full, events are dropped and its reader is told so, who then takes a snapshot instead.
package feed
