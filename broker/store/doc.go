// Package store is the memory of all queues and their journal in one. A message's
// bytes are copied once, into a segment outside the Go heap, and a queue keeps
// their position. What is durable is written from that same memory to a file.
//
//	Put ──► Enqueued ──► Settled            one queue after another:
//	 │         │ Amended   │                Moved = Settled + Enqueued in one record
//	 ▼         ▼           ▼
//	message   entry    settlement           Transacted = many of both in one record
//	                       │                records in the log's active segment
//	                       │
//	                     Commit ──► write, fdatasync ──► callback
//
// # Guarantees
//
// What was handed in before a Commit whose callback got nil is found again after
// any crash, in the default mode after a power cut too (SyncMode says what the
// others promise). Of what came later, a prefix in the order of the calls is
// found: a message that was moved is in the one place or in the other, and of a
// transaction all is found or nothing.
//
// A settled message does not come back once its settlement was committed. A
// message that was not settled is not lost, whatever compaction and dropping of
// segments were doing.
//
// Which entries had been delivered is found after a clean stop only (stopped.go).
//
// What is found is what was put: every record has a checksum that also covers its
// place. What was being written in a crash is cut off and reported. Damage in what
// had been synced, and the loss of a file, are refused with the name and offset
// (CorruptError), and nothing is changed. After a failed write or sync nothing is
// tried again: every callback gets the error, Failed delivers it, and the process
// has to end and recover.
//
// What Define was told before a SyncDefinitions that returned nil is found again after
// any crash, in every mode, and of what it was told later all up to some call. No
// message is found whose queue was defined before and is lost.
//
// On a full disk, or while no file descriptor is left to open a segment's file with,
// durable messages are refused (ErrFull) before anything is
// written that would not fit; settlements, moves and compaction use a reserve,
// and publishing resumes when there is space. Messages can be read throughout.
// While the disk is far behind publishers wait, of durable messages and of others;
// nothing else does.
//
// # Two logs
//
// The journal holds durable messages and the records about them; its segments are
// files. The volatile log holds all others and is gone after a restart. In a store
// without a directory every message is volatile.
//
//	        full              written, synced         no references
//	active ─────► sealed ────────► complete ───────────────► dead ──► dropped
//	                │                  │ too many in memory           a record says so,
//	                │ (volatile)       ▼                              then the file goes
//	                └──────────────► paged: the file's pages in
//	                                 place of memory, same address
//
// Segments of the volatile log get their files when they are paged: places in files
// without a name, which are used again and are gone with the process (spill.go).
//
// A publisher takes strips of the active segment of the volatile log to write a batch
// into without its lock (putter.go); a segment stays as it is while one is open.
//
// Segments count the references into them. One that is mostly garbage is emptied
// by compaction (compact.go), which asks the owner to let each entry stand at a
// copy; one without references is dropped when no other record depends on it
// (drop.go). Files are allocated ahead (spare.go).
//
// # Definitions
//
// What queues and the like there are is a file of keys and values of its own. It begins
// with all there is, changes are appended, and when it has doubled it is made anew
// (definitions.go, definitions_file.go): what a change costs does not grow with the file.
//
//	Define ──► pending ──► batch: write, fdatasync ──► mark
//	                         │ it does not fit
//	                         ▼
//	                       new file: what is true, written, synced, renamed
//
// Before the committer writes records it has what is pending written, since they may
// speak of it. It does not wait for that while there is no space for definitions; then
// the keeper tries again, and Unsaved says why (an owner who lets no message into a queue
// before SyncDefinitions has returned loses none by it).
//
// # Formats
//
// Each kind of file has a version in its header. A later one is refused (ErrVersion),
// those before are read: of segments (file.go has the list), and of definitions, where
// version 1 was one document, given to the owner as the definition without a key. What is
// written is of the present version, so a folder that was used is not for the Curfew
// before.
//
// # Concurrency
//
// View takes no lock. Put, Enqueued, Settled and Moved take the log's, for a copy
// in memory; it is the innermost lock. Two goroutines work behind: the committer
// writes and syncs (commit.go), the keeper does what nobody waits for (keeper.go).
// Define may be called with any lock held; definitions are written by those who wait for
// them.
//
// # Left to others
//
// Order, counts and deadlines are the queue's. A queue's incarnation is never
// used again, which the owner sees to; sequence numbers may be, after a crash has
// undone their first use. Entries of queues that are not known any more after a
// restart are the owner's to settle.
package store
