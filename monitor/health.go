package monitor

import "time"

// ScheduleState is which schedule fires.
type ScheduleState string

const (
	// ScheduleEmbedded: the in-process index; no Redis is configured.
	ScheduleEmbedded ScheduleState = "embedded"
	// ScheduleOfPrimary: the primary has a schedule of its own, and fires.
	ScheduleOfPrimary ScheduleState = "primary"
	// ScheduleNone: the primary expires messages by itself, and nothing is kept.
	ScheduleNone ScheduleState = "none"
	// ScheduleUp: Redis.
	ScheduleUp ScheduleState = "up"
	// ScheduleRebuilding: the index, while Redis is brought up to date.
	ScheduleRebuilding ScheduleState = "rebuilding"
	// ScheduleDown: the index; Redis is away, or fails.
	ScheduleDown ScheduleState = "down"
)

// Says is which schedule fires, in words. well is false if it is not the one that is configured.
func (s ScheduleState) Says() (which, then string, well bool) {
	switch s {
	case ScheduleUp:
		return "Redis", ", fires on time", true
	case ScheduleOfPrimary:
		return "in the keepers of the queues", ", fires on time", true
	case ScheduleNone:
		return "RabbitMQ's own", "; Curfew observes, and keeps no queue", true
	case ScheduleEmbedded:
		return "in Curfew itself", ", fires on time", true
	case ScheduleRebuilding:
		return "rebuilding Redis", "; Curfew itself fires", false
	}
	return "Redis is away", "; Curfew itself fires", false
}

// Health is the state of a monitor at one moment.
type Health struct {
	Schedule ScheduleState `json:"schedule"`
	// Since is when that state began.
	Since time.Time `json:"since"`
	// Reasons say why the service is degraded, in words for an operator; empty when it is not.
	Reasons []string `json:"reasons,omitempty"`
	// Down is why the schedule in Redis is not used; empty: it is, there is none, or a start has not brought it up yet. It is the first of Reasons.
	Down string `json:"-"`
	// Restarts counts loops that ended and were started again.
	Restarts uint64 `json:"restarts,omitempty"`
	// Stalled names the loops that give no sign of life.
	Stalled []string `json:"stalled,omitempty"`
	// Pending deadlines are waiting for their time.
	Pending int64 `json:"pending"`
	// LastTick is the last heartbeat of the loop that fires. It beats at least once a second.
	LastTick time.Time `json:"last_tick"`
	// Orphans are deadlines that an earlier run of this instance left in Redis, if this run began with a new primary:
	// their messages are lost, or elsewhere.
	Orphans int64 `json:"orphans,omitempty"`
	// ClockSkew is the clock of Redis less that of deadlines, as it was last seen. Nothing depends on it.
	ClockSkew time.Duration `json:"-"`
	// Held is how many messages expired that a consumer had held past their deadlines, since the start. They are not late by Curfew's doing.
	Held uint64 `json:"held_expired,omitempty"`
	// Lag is how far past its deadline the next one to fire is; 0 when none is due.
	Lag time.Duration `json:"lag"`
}
