// Package audit keeps a record of every message that expired: its id, its queue, when it was
// due and when it left, by which path, and where it went. It also records what users did through
// the management API, the dashboard or the command line. If configured, it records messages
// that were dead-lettered for other reasons, too: rejected, refused by a full queue, delivered
// too often. That is not the default, since in some systems those are most of the traffic, and
// would crowd out the others.
//
//	expiry, death, change ─► Log.Add ─► buffer ─► Log.Run ─► audit-<start>.jsonl, ... ─► Search, export
//
// # Files
//
// There is one JSON object per line, oldest first. A file is named after the instant of its
// first record in Unix ms. It is full when it takes an eighth of the space that the audit may
// take, and the oldest files are removed when that space is used up. A line that a crash cut
// is skipped.
//
// # Guarantees
//
// Add never waits, and no message depends on the audit. Records that arrive faster than they
// can be written, or while the disk is full, are counted, and the count is recorded as a gap
// in their place (Lost). So the audit never looks complete when it is not. Records reach the
// file within a fifth of a second and are not synced. A killed process loses that much, and
// a machine that loses power loses what its operating system had not written. Where messages
// are is recorded in the journal, not in the audit.
package audit
