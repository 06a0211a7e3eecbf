package broker

import "curfew/broker/memory"

// resourceLimits are the alarms for memory and disk, and the part of the memory that clients may use.
type resourceLimits struct {
	alarm       *memory.Alarm
	clients     *memory.Budget
	memoryLimit int64
}

// Alarms reports whether the disk and memory alarms are on (RabbitMQ: Memory and
// Disk Alarms).
func (r *resourceLimits) Alarms() (memory, disk bool) {
	return r.alarm.Low()
}

// BlockedReason reports why publishers have to wait, "" if they need not, and returns a
// channel that is closed when that changes. It measures memory and disk now if the last time
// was a while ago.
func (r *resourceLimits) BlockedReason() (reason string, changed <-chan struct{}) {
	return r.alarm.Reason()
}

// Blocked reports whether publishers have to wait. It is cheap enough to be called before each
// message.
func (r *resourceLimits) Blocked() bool { return r.alarm.Blocked() }

// clientsPart: clients' unfinished work may take one part in clientsPart of the memory limit.
const clientsPart = 16

// clientsShare is the part of the memory limit that clients' unfinished work may take: two
// of the largest messages at least, or nobody could publish one.
func clientsShare(o *Options) int64 {
	if o.MemoryLimit == 0 {
		return 0
	}
	return max(o.MemoryLimit/clientsPart, 2*int64(o.MaxMessageBytes))
}

// Clients is the budget for what connections and requests make the broker hold besides
// messages in queues.
func (r *resourceLimits) Clients() *memory.Budget { return r.clients }

// MemoryInUse is what is compared with the memory limit, in bytes.
func (r *resourceLimits) MemoryInUse() int64 { return r.alarm.MemoryInUse() }

// MemoryLimit is the number of bytes above which publishers wait; 0: no limit.
func (r *resourceLimits) MemoryLimit() int64 { return r.memoryLimit }
