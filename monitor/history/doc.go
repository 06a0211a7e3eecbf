// Package history remembers a day: how many messages waited, came, went and expired, how late, and
// how many were at risk, in total and for each queue.
//
//	Source ─► sample, once a second ─┐
//	                                 ├─► 1 s ring ─► 10 s ring ─► 1 min ring ─► Read, Handler
//	expiry stream ─► Expired ────────┘                  │
//	                                                    └─► a file, soon after the start and after news, every 5 min, and at the end of Run
//
// A ring has a place for each interval. When ten seconds are over, they become one record of the
// next ring, and six of those become a minute: counts are added up, and the depth, the messages
// at risk and the lateness keep their highest values. So a peak of one second can still be seen
// a day later.
//
// # Bounds
//
// A queue's rings grow with its age, from 324 to 28,620 bytes, so that 1,000 queues stay below 32 MiB. A record has 18 bytes:
// numbers up to 256 are exact, larger ones and latenesses are within 0.4%. A queue gets
// rings when something first happens in it. They are kept for as long after it is deleted as it existed, for two hours at least and a day at most.
// At most 1,000 queues have them. When there are that many,
// another queue takes the rings of one that was deleted, or else of the one in which nothing has
// happened for the longest time, if that is an hour or more. Without such a queue it has no
// history of its own, and counts only in that of all queues, where what expires in it counts as a loss.
//
// Sampling takes about a hundredth of one processor: if a sample takes longer than 10 ms, the next
// one comes up to 3 s later, and its counts are spread over the seconds since the last one.
//
// # After a crash
//
// The file is replaced as a whole. A crash loses what came after it was last written: of marks, losses and who consumed last up to 15 s
// (or a hundred times as long as writing takes, with many queues), of all else up to five minutes, which leaves a gap. The mark of the next start says how the process had ended, and for how long it was
// away: the time of the file is set every few seconds. A file that is damaged, of another version or more than a day old is
// ignored, and the log says so.
//
// # Left to others
//
// The package does not know the broker: what it samples is behind Source. It draws nothing.
package history
