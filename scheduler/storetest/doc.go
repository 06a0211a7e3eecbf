// Package storetest is for tests: Run, the suite that every scheduler.Store passes;
// StartRedis, a real Redis server that can be killed, paused and restarted; Faulty, a
// Store that fails, hangs or is slow on command.
//
// The suite holds a Store to its contract only, so it does not ask in which order
// shadows of different queues are claimed. A missing redis-server fails the test with
// the command that installs it.
package storetest
