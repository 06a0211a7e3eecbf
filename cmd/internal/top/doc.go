// Package top is curfew top: a full screen with the verdict pinned above what is wrong and all queues, from which one goes down to consumers,
// messages, dead letters and their replay.
//
// Each place shows the tables of commands that exist (status, incident ls, queue list, ...), run in this process again and again: so no number
// is computed here, and what a row is about leads to the next commands. Bubble Tea reads keys and draws.
//
//	places: incidents and queues ─► a queue ─► a message
//	                                   ├► its dead letters
//	                                   └► what a replay would do ─► replays
package top
