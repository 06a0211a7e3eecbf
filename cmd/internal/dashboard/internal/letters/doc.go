// Package letters is the pages of dead letters: the queues that have some, the messages of one queue with filters that can be saved, a single
// message, and what can be done to them: replay, delete, change, download, import.
//
//	queues ─► list, filtered ─► one message ─► change ─► review ─► replayed
//	                │  some or all      │
//	                └────► dry run ◄────┘──► replayed, or deleted
//
// The first press of a button changes nothing: a dry run or a question comes in between. Everything works without scripts. The address of a
// page contains its filter.
package letters
