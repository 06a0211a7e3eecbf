// Package demo shows what Curfew does: Run with a broker of its own that ends with it, Filler in one that is running, so that every page and
// command has something to show.
package demo
