package broker

import (
	"curfew/broker/internal/resources"
	"curfew/broker/memory"
)

// resourceLimits are the alarms of memory and disk, and what clients may take of the memory.
type resourceLimits struct {
	alarm       *resources.Alarm
	clients     *memory.Budget
	memoryLimit int64
}

// Alarms reports whether the disk and memory alarms are on (RabbitMQ: Memory and
// Disk Alarms).
func (r *resourceLimits) Alarms() (memory, disk bool) {
	return r.alarm.Low()
}

// Gate reports why publishers have to wait, "" if they have not, and returns a
// channel that is closed when that changes. It has memory and disk measured now, if that
// was a while ago.
func (r *resourceLimits) Gate() (reason string, changed <-chan struct{}) { return r.alarm.Reason() }

// Gated reports whether publishers have to wait. It costs next to nothing: to be asked before each
// message.
func (r *resourceLimits) Gated() bool { return r.alarm.Blocked() }

// clientsPart of the memory limit is what clients' unfinished work may take.
const clientsPart = 16

// clientsShare is the part of the memory limit that clients' unfinished work may take: two
// of the largest messages at least, or nobody could publish one.
func clientsShare(o *Options) int64 {
	if o.MemoryLimit == 0 {
		return 0
	}
	return max(o.MemoryLimit/clientsPart, 2*int64(o.MaxMessageBytes))
}

// Clients is what connections and requests draw from for what they have the broker hold
// besides messages in queues.
func (r *resourceLimits) Clients() *memory.Budget { return r.clients }

// MemoryInUse is what is held against the memory limit, in bytes.
func (r *resourceLimits) MemoryInUse() int64 { return r.alarm.MemoryInUse() }

// MemoryLimit is above how many bytes publishers wait; 0: no limit.
func (r *resourceLimits) MemoryLimit() int64 { return r.memoryLimit }
