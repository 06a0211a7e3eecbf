// Package faults breaks the Curfew binary from outside, while clients use it and write
// down what they see, and has package ledger judge what they saw: killed in the middle
// of anything, stopped and continued, out of disk, with damaged files.
//
//	kill_test.go    kill -9 in a loop, and SIGTERM under the same load
//	pause_test.go   SIGSTOP for a few seconds, past deadlines
//	full_test.go    a disk that is really full
//	damage_test.go  files that are missing, of another version, or have flipped bits
//	table_test.go   every scenario of the list, and which test anywhere in the tree covers it
//
// A run prints its seed. FAULTS_SEED repeats its plan: what is published with which
// deadlines, what consumers do, when the process is killed. It does not repeat the
// interleaving, which is the machine's. FAULTS_KILLS is the number of kills, 20 unless
// set; a long run does 200. When a history breaks a rule, its log is kept and named:
//
//	go run ./integration/faults/ledgercheck LOG
//
// A killed process leaves what it had written in the page cache. That what was not
// synced may be gone, too, is tried by broker/store on a disk in memory.
//
// Linux only. The disk that is full is a tmpfs, which takes root to mount.
package faults
