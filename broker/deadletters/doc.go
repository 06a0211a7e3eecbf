// Package deadletters is for people who have dead letters. It says which queues have some and why, shows what is in them, and brings them back
// to where they were published.
//
//	Queues ─► Groups, Search ─► Replays.Start or Purge ─► the queue is empty
//	                       ├──► Export ─► a file ─► Import
//	                       └──► DraftOf ─► a person changes it ─► Resend
//
// A dead letter is a message with an x-death header, in any queue. What it died of, where, and where it had been published is read from that
// header (Letter).
//
// # Looking
//
// A look takes and marks nothing. It holds a queue's lock for a page at a time and keeps only the answer, so a queue of millions is read in
// bounded memory. It is no snapshot: it may or may not see what comes and goes meanwhile.
//
// # Replays
//
// A replay walks its queue once, up to the messages that were there when it was started, and moves each one that its filter matches
// (broker: Publisher.Move):
//
//	running ──all looked at──► done
//	   │ └──Cancel──► cancelled ──Resume──► running
//	   └──disk full, no permission, queue deleted──► failed ──Resume──► running
//
// A message stays where it is, counted under a SkipReason, if its target leads nowhere, is full or leads back, if the message was replayed too
// often (x-curfew-replays), if a consumer holds it, or if it has no time left. A replay passes over what it has itself brought back
// (x-curfew-replay-run).
//
// A replay belongs to the user who started it and has the rights that this owner has at the moment, to read the queue and to publish; it fails
// when they are gone.
//
// One message may be changed on the way. DraftOf shows what a replay would publish of it, and Resend moves it as it has become. The limit of
// replays does not count there.
//
// # After a crash
//
// A message's arrival and its removal are one record of the journal, so it is in its new queues or in the old one, never in both or in none. A
// replay that was running goes on at the next start from where it was last saved. What it has moved is no longer in the queue, so nothing is
// moved twice; its counts may lack what was moved in the second before the crash. Without a directory, replays are forgotten with the process.
//
// # Time to live
//
// A message that expired needs time to be replayed. Fresh gives it the time it was published with; an absolute deadline comes back only if it
// still lies ahead. Remaining keeps the deadline it had, as far as its properties tell: x-expires-at, or timestamp and expiration. None leaves it
// to its queue's time to live, which always counts.
//
// # Left to others
//
// Who may look, purge, replay and handle a replay, and the wait until a change is durable (broker/operate); moving messages (broker); how all
// this looks on the wire (broker/management).
package deadletters
