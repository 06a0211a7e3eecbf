// Package deadletters is for people who have dead letters: which queues hold some and
// why, what is in them, and how they get back to where they were to go.
//
//	Queues ─► Groups, Search ─► Replay (a run) or Purge ─► the queue is empty
//	                       ├──► Export ─► a file ─► Import
//	                       └──► DraftOf ─► a person changes it ─► Resend
//
// A dead letter is a message with an x-death header in any queue. What it died of,
// where, and where it had been published is read from that header (Letter).
//
// # Looking
//
// Nothing is taken or marked, a queue's lock is held for a page at a time, and of what
// was read only the answer is kept: a queue of millions is read in bounded memory. It
// is no snapshot: what comes and goes meanwhile may be seen or not.
//
// # Replay
//
// A replay is a run: made, followed, cancelled, resumed. It walks the queue once, up to
// the messages that stood there when it was made, and moves each that its filter
// matches (broker: Publisher.Move):
//
//	running ──all looked at──► done
//	   │ └──Cancel──► cancelled ──Resume──► running
//	   └──disk full, no permission, queue deleted──► failed ──Resume──► running
//
// A message stays where it is, and is counted under its reason, if its target leads
// nowhere, is full or leads back, if it was replayed too often (x-curfew-replays), if a
// consumer holds it, or if no time is left to it. What the run itself brought back,
// x-curfew-replay-run on it, is passed over.
//
// Its owner is the user who made it. A run has the rights its owner has at the moment to read the
// queue and to publish; it fails where they are gone. The owner and administrators may
// see, cancel and resume it, and nobody else (mayHandle): every face asks Runs.
//
// One message may be changed on the way: DraftOf shows what a replay would publish of it,
// Resend moves it as it has become. The loop guard does not count there.
//
// # After a crash
//
// A message's arrival and its removal are one record of the journal, so it is in its
// new queues or in the old one, never in both or none. A run that was under way goes on
// at the next start from where it was last saved: what it has moved is not there any
// more, so going over a part again moves nothing twice. Its counts may lack what was
// moved in the second before the crash. Without a directory runs are forgotten with
// the process.
//
// # Time to live
//
// A message that expired needs time to be replayed. Fresh gives it the time it was
// published with; of an absolute deadline only one that still lies ahead comes back.
// Remaining keeps the deadline it had, as far as its properties tell it: x-expires-at,
// or timestamp and expiration. None leaves it to its queue's time to live, which
// always counts.
//
// # Left to others
//
// Who may look, purge and make a run (broker/management and the dashboard ask), moving
// (broker), and the form on the wire.
package deadletters
