// Package timers has queues, exchanges and schedules of delayed messages looked at when it is time: a Set wakes each at the instant that
// it has asked for, and a Shrinker looks at those that have become empty, which then give memory back.
//
// A Set has one goroutine and one timer for all, and a Shrinker a timer only while something is empty, so an idle broker does nothing.
// Nothing here survives a restart: each asks again.
package timers
