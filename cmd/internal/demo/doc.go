// Package demo shows what Curfew does. Run has a broker of its own, which ends with it. Filler fills a running Curfew, so that every page and
// command has something to show.
package demo
