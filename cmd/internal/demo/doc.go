// Package demo shows what Curfew does. Run has its own broker, which ends with it. Filler fills a running Curfew, so that every page and
// command has something to show.
package demo
