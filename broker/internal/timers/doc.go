// Package timers wakes queues, exchanges and schedules of delayed messages: a Set wakes each at the
// instant that it has asked for, and a Shrinker lets those that have become empty release memory.
//
// A Set has one goroutine and one timer for all. A Shrinker has a timer only while something is
// empty. So an idle broker does nothing. Nothing here survives a restart: each asks again.
package timers
