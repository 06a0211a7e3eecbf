// Package deadletters is for people who have dead letters. It reports which queues have some and why, shows the messages, and moves them back
// to where they were published.
//
//	Queues ─► Groups, Search ─► Replays.Start or Purge ─► the queue is empty
//	                       ├──► Export ─► a file ─► Import
//	                       └──► DraftOf ─► a person changes it ─► Resend
//
// A dead letter is a message with an x-death header, in any queue. That header says why and in which queue it died, and where it had been published
// (Letter).
//
// # Searching
//
// A search takes and marks nothing. It holds a queue's lock for a page at a time and keeps only the answer, so a queue of millions is read in
// bounded memory. It is not a snapshot: it may or may not see messages that come and go while it runs.
//
// # Replays
//
// A replay walks its queue once, up to the messages that were there when it was started, and moves each one that its filter matches
// (broker: Publisher.Move):
//
//	running ──all examined──► done
//	   │ └──Cancel──► cancelled ──Resume──► running
//	   └──disk full, no permission, queue deleted──► failed ──Resume──► running
//
// A message stays where it is, counted under a SkipReason, if its target leads nowhere, is full or leads back, if the message was replayed too
// often (x-curfew-replays), if a consumer holds it, or if it has no time left. A replay skips the messages that it has itself moved
// back (x-curfew-replay-run).
//
// A replay belongs to the user who started it. It has the rights that this owner has at the moment, to read the queue and to publish; it fails
// when they are taken away.
//
// One message may be changed before it is sent. DraftOf shows what a replay would publish of it, and Resend moves the changed message. The limit
// on the number of replays does not apply to it.
//
// # After a crash
//
// A message's arrival and its removal are one record of the journal, so it is in its new queues or in the old one, never in both or in none. A
// replay that was running continues at the next start from where it was last saved. What it has moved is no longer in the queue, so nothing is
// moved twice; its counts may lack what was moved in the second before the crash. Without a directory, replays are forgotten with the process.
//
// # Time to live
//
// A message that expired needs a new time to live when it is replayed. Fresh gives it the one it was published with; an absolute deadline is kept
// only if it is still in the future. Remaining keeps the deadline it had, as far as its properties tell: x-expires-at, or timestamp and expiration.
// None leaves it to its queue's time to live, which always counts.
//
// # Left to others
//
// Who may search, purge, replay and manage a replay, and the wait until a change is durable (broker/operate); moving messages (broker); the form of
// requests and answers (broker/operate/messages, broker/management).
package deadletters
