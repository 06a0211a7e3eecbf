// Package faults breaks the Curfew binary from outside, while clients use it and record what they
// see, and has package history judge the record: the process is killed at any moment, stopped and
// continued, out of disk, or has damaged files.
//
//	kill_test.go       kill -9 in a loop, and SIGTERM under the same load
//	pause_test.go      SIGSTOP for a few seconds, past deadlines
//	full_test.go       a disk that is really full
//	fails_test.go      a disk that fails or stands still, file descriptors used up
//	damage_test.go     files that are missing, of another version, or have flipped bits
//	network_test.go    a bad network before Redis
//	failover_test.go   Sentinels that promote another master, a cluster whose slots move
//	clock_test.go      a machine that slept between two lives, time zones
//	neighbour_test.go  one virtual host that does its worst, and the clients of another
//	scenarios_test.go  every fault there is to survive, and which test anywhere in the tree covers it
//
// A run prints its seed. FAULTS_SEED repeats its plan: what is published with which
// deadlines, what consumers do, when the process is killed. It does not repeat the
// interleaving, which is the machine's. FAULTS_KILLS is the number of kills, 20 unless
// set; a long run does 200. When a history breaks a rule, its log is kept and named:
//
//	go run ./integration/faults/historycheck LOG
//
// A killed process leaves what it had written in the page cache. A machine that loses power may
// lose what was not synced; broker/store tests that on a disk in memory.
//
// Linux only. Disks to fill and to break are mounted: a tmpfs and an ext4 in a file,
// which takes root, loop devices and e2fsprogs. What is missing fails a test.
package faults
