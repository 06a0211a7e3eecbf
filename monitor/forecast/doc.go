// Package forecast says which of the messages that wait in a queue will miss their
// deadlines, before they do.
//
// A queue is a line that is served at some rate. Walking it from the head, a message
// is reached when those before it have been served; if its deadline has come by then
// it expires instead, and takes no service. That needs two things: how the line stands
// (a sample of it is enough, so a queue of ten million costs what one of a thousand
// does) and how fast it moves (Meter).
//
//	head                                               tail
//	 │ d=9s  d=2s  d=1h  d=3s  ... every Step-th message ... │
//	 ▼
//	served at 1 s: kept   2 s: missed   2 s: kept   ...
//
// # What it assumes
//
// Served means handed to a consumer: what a consumer holds at its deadline is not
// missed. Messages yet to come stand behind all that is here, so they change nothing,
// unless they have a higher priority. Consumers go on as they did in the last seconds.
// The package is pure: no clock, no lock, no goroutine.
package forecast
