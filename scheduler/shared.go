package scheduler

import "time"

// RefreshEvery is how often an instance that shares a schedule's server with others renews
// what it owns there, and beats.
const RefreshEvery = 3 * time.Second

// Status is the state of the server that holds a schedule; of several, the worst.
type Status struct {
	// Version is the server's, such as "7.0.15".
	Version string `json:"version"`
	// Role is "master", or "slave" when writes would be refused.
	Role string `json:"role"`
	// MaxmemoryPolicy is "noeviction", or one that may evict the schedule.
	MaxmemoryPolicy string `json:"maxmemory_policy"`
	// Persistence is "aof", "rdb", "none", or "unknown" when the server does not say.
	Persistence string `json:"persistence"`
	// SkewMillis is the server's clock minus this process's. Nothing depends on it.
	SkewMillis int64 `json:"skew_ms"`
	// Warnings tell an operator what endangers the schedule.
	Warnings []string `json:"warnings,omitempty"`
}

// Peer is another instance that shares the server. It does not change until that instance
// gives its next sign of life.
type Peer struct {
	Name   string
	BeatAt int64  // Unix ms of its last sign of life, by the server's clock
	Shards int    // of its schedule
	Owner  string // which process that was, and where
}

// Overdue is what is due in the schedule of an instance that gives no sign of life. Instants
// are compared with the server's clock.
type Overdue struct {
	Stored     int64 // shadows
	Due        int64 // those of them whose deadline has passed
	OldestAt   int64 // Unix ms, the earliest deadline among the first thousand of those; 0 for none
	LateMillis int64 // how long ago that was
	// Queues are the queues with the most due, the most first, 10 at most, counted over the
	// first thousand shadows that are due.
	Queues []QueueCount
}

// QueueName is a queue's number with its name.
type QueueName struct {
	Queue       uint64
	VHost, Name string
}

// QueueCount is how many deadlines are due in a queue. A queue whose name is not known has
// the Name "".
type QueueCount struct {
	QueueName
	Count int64
}
