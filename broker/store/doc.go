// Package store keeps the messages of all queues in memory and, in the same form, in a
// journal on disk. Put copies a message's bytes once, into a segment of memory outside the
// Go heap, and returns its position, which is all that a queue has to keep. Durable
// messages are written to a file straight from that memory.
//
//	Put ──► Enqueued ──► Settled            one queue after another:
//	 │         │ Amended   │                Moved = Settled + Enqueued in one record
//	 ▼         ▼           ▼                Replaced = the same, for one entry and its new message
//	message   entry    settlement           Transacted = many of both in one record
//	                       │                records in the log's active segment
//	                       │
//	                     Commit ──► write, fdatasync ──► callback
//
// # Guarantees
//
// When a Commit callback gets nil, everything handed in before that Commit survives a crash
// of the process. In the default mode it also survives a power failure (SyncMode says what
// the other modes promise). Of what was handed in later, a prefix survives, in the order of
// the calls. A moved message is in one place or in the other, and a transaction survives
// whole or not at all.
//
// A message does not come back once its settlement was committed. A message that was not
// settled is never lost, whatever compaction and the dropping of segments are doing.
//
// Which entries had been delivered is known only after a clean stop (clean_stop.go).
//
// Recovery returns exactly what was put: each record has a checksum, which also covers the
// record's position. What was being written in a crash is cut off and reported. If
// something that had been synced is damaged, or a file is missing, Open refuses with the
// name and the offset (corruptError) and changes nothing; Repair does what can be done about
// it without a loss. A failed write or sync is not
// tried again: every callback gets the error, Failed delivers it, and the process must end
// and recover.
//
// Definitions handed to Define before a SyncDefinitions that returned nil survive any
// crash, in every mode. Later definitions survive up to some call. Recovery never returns a
// message without the definition of its queue, if the queue was defined before the message
// was put.
//
// When the disk is full, or no file descriptor is left to open a segment's file with,
// durable messages are refused (ErrFull) before anything is written that would not fit.
// Settlements, moves and compaction use a reserve. If even that is used up, settlements wait in
// memory, and the files of segments that nothing refers to any more are emptied to make room
// for them (emptyDead). Publishing resumes when there is space again. The store opens on a full
// disk: it needs no more there than an empty file for the next segment, and if the disk has
// not even room for that, the last segment is ended later (journal.unended). A new file gets
// its final name last, and a start removes what a crash has left under another name.
// Messages can be read all the time. While the disk is far behind, publishers wait,
// whether their messages are durable or not; nothing else waits.
//
// # Two logs
//
// The journal holds durable messages and the records about them; its segments are files.
// The volatile log holds all other messages and does not survive a restart. In a store
// without a directory every message is volatile.
//
//	        full              written, synced         no references
//	active ─────► sealed ────────► complete ───────────────► dead ──► dropped
//	                │                  │ too many in memory           a record says so,
//	                │ (volatile)       ▼                              then the file goes
//	                └──────────────► paged: the file's pages in
//	                                 place of memory, same address
//
// Segments of the volatile log get a file only when they are paged. It has no name, and
// disappears with its pages (spillTo).
//
// A publisher takes strips of the volatile log's active segment and writes a batch into
// them without holding the log's lock (putter.go). While a strip of a segment is open, the
// segment is neither compacted nor paged.
// A large message is written without the lock of either log: in the volatile log it counts as a
// strip until then, in the journal the committer waits for it before it writes the batch.
//
// Segments count the references to their messages. Compaction empties a segment that is
// mostly garbage (compact.go): it asks the owner to let each entry refer to a copy. A
// segment without references is dropped when no other record depends on it (drop.go). Files
// are allocated ahead of time (spare.go).
//
// # Which records count
//
// After compaction a message may be on record at several positions, the original and its
// copies. Compaction copies the message, then the owner lets the entry refer to the copy, then
// the entry is recorded at the copy, with the terms that it had when the owner changed it.
// Settlements and amendments may come between these steps. For each entry, therefore:
//
//   - A later position is in a later segment: copies come from complete segments and go to the
//     active one, and a restart begins a new segment.
//   - An amendment names the segment that the entry's message was in, under the queue's lock.
//     So the entry that is recorded at a copy includes all amendments that name an earlier
//     segment, even those that come after the copy in the journal, and no others.
//   - A copy's segment is kept as long as the original's, and an amendment is kept as long as
//     the segment that it names. So while a position exists, the latest amendment exists that
//     names its segment or a later one.
//
// Recovery takes the last position of an entry that is not settled, and the latest amendment
// that names its segment or a later one. (It is a later one if the crash lost the record of
// the entry at the copy, but not an amendment made after the owner had changed the entry.) An
// amendment that names an earlier segment must not count: a later one may already have been
// dropped.
//
// A message that takes another one's place (Replaced) is no copy in this sense: the record that enters it
// settles the original as of the new position, and so is needed while the original exists, as any
// settlement is. Both may be in one segment. Then of the terms that name it the latest are the
// new message's, since Replaced amends first.
//
// # Definitions
//
// Users, queues and the like are kept in a file of keys and values of their own. The file
// begins with everything there is; changes are appended, and when the file has doubled it
// is written again (definitions.go, definitions_file.go). So the cost of a change does not
// grow with the number of definitions.
//
//	Define ──► pending ──► batch: write, fdatasync ──► mark
//	                         │ it does not fit
//	                         ▼
//	                       new file: what is true, written, synced, renamed
//
// Before the committer writes records it has all pending definitions written, since the records may
// refer to them; removals (Undefine) it leaves to those who wait for them. If there is no space for
// definitions it does not wait: the maintainer tries again later, and Unsaved reports why. An owner
// that lets no message into a queue before SyncDefinitions has returned loses nothing by this.
//
// # Formats
//
// The header of each kind of file contains a version. A file of another version is refused
// (errVersion): an older Curfew cannot open a directory that a newer one has used.
//
// # Concurrency
//
// View takes no lock. Put, Enqueued, Settled and Moved take the log's lock while they copy
// into memory; it is the innermost lock. Two goroutines work in the background: the
// committer writes and syncs (commit.go), the maintainer does what nobody waits for
// (maintainer.go). Define may be called with any lock held; the goroutines that wait in
// SyncDefinitions write the definitions themselves. With the build tag schedule a test chooses
// which goroutine runs whenever one releases a lock or has waited for a channel (lock.go).
//
// # Left to others
//
// Order, counts and deadlines belong to the queue. The owner ensures that a queue's
// incarnation is never used again. Sequence numbers may be used again after a crash has
// undone their first use. After a restart the owner settles entries of queues that no
// longer exist.
package store
