package scheduler

import "time"

// RefreshEvery is how often an instance renews its ownership of a schedule.
const RefreshEvery = 3 * time.Second

// Status is the state of the server that holds a schedule; of several, all their warnings and the greatest skew.
type Status struct {
	SkewMillis int64    // the server's clock minus this process's; nothing depends on it
	Warnings   []string // what endangers the schedule, for an operator
}
