// Package overview is the first page, with the deadlines ahead, the history and what is wrong, and the page of the deadlines in a span of time, to
// which the bars of the first one lead.
package overview
