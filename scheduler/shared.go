package scheduler

import "time"

// RefreshEvery is how often an instance renews its ownership of a schedule.
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
