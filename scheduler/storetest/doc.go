// Package storetest is the suite that every scheduler.Store passes, and what tests
// of its users need: a real Redis and a Store that fails on command.
package storetest
