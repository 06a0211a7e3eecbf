// Package feed carries what happens to deadlines, in order, from the queues to the monitor, which keeps a schedule of
// them.
//
// It is bounded and never blocks. When it is full it drops events and reports that to its reader, which takes a new
// snapshot.
package feed
