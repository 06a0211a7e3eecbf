// Package letters is the pages of dead letters: the queues that have some, the messages of one queue with filters that can be saved, one message
// by itself, and what is done to them: replay, delete, change, download, import.
//
//	queues ─► list, filtered ─► one message ─► change ─► review ─► replayed
//	                │  some or all      │
//	                └──────► try ◄──────┘──► replayed, or deleted
//
// Nothing is changed by the first press of a button: a try or a question comes in between. Everything works without scripts; the address of a
// page has its filter.
package letters
