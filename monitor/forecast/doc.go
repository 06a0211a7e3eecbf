// Package forecast predicts which of the messages that wait in a queue will expire.
//
// A queue is a line that is served at some rate. From the head on, a message is reached when
// those before it have been served. If its deadline has passed by then, it expires instead
// and takes no service. A prediction needs two things: the messages in line (a sample is
// enough, so a queue of ten million costs as much as one of a thousand) and how fast the
// line moves (Meter).
//
//	head                                               tail
//	 │ d=9s  d=2s  d=1h  d=3s  ... every Step-th message ... │
//	 ▼
//	reached at 1 s: served   2 s: expired   2 s: served   ...
//
// # What it assumes
//
// Served means handed to a consumer: what a consumer holds at its deadline does not expire.
// Messages yet to come are behind all that wait now, so they make no difference unless they have
// a higher priority. Consumers go on as they did in the last seconds. The package is pure: it
// has no clock, lock or goroutine.
package forecast
