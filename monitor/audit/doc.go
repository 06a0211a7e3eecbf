// Package audit keeps a record of every message that expired: which, in which queue, when
// it was due and when it left, who noticed, and where it went.
//
//	expiry ─► Log.Add ─► buffer ─► Log.Run ─► audit-<start>.jsonl, ... ─► Search, export
//
// # Files
//
// One JSON object a line, oldest first, in files named by the instant of their first
// record in Unix ms. A file is ended when it has an eighth of the space the audit may
// take, and the oldest go when that is used up. A line that a crash cut is passed over.
//
// # Guarantees
//
// Add never waits, and the message's way does not depend on the audit. What comes faster
// than it can be written, or while the disk is full, is counted, and the count is
// recorded as a gap in its place (Lost), so that the record never looks complete when it
// is not. Records reach the file within a fifth of a second and are not synced: a killed
// process loses that much of them, a machine that loses power what its system had not
// written. The journal, not the audit, says where messages are.
package audit
