// Package overview is the first page, with the deadlines ahead, the history and what is wrong. The bars of its timeline lead to another page, of
// the deadlines in a span of time.
package overview
