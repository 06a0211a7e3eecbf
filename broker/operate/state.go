package operate

import (
	"time"

	"curfew/broker/queue"
)

// State is how the broker is at a moment.
type State struct {
	NowMillis         int64 // Unix ms by the clock that deadlines are shown by
	Started           time.Time
	DataDir           string        // "": memory only
	NewFolder         bool          // DataDir had nothing of a broker at this start
	DiskSilent        time.Duration // the disk has not answered for so long; 0: it answers
	Blocked           string        // why publishers have to wait; "" they do not
	Memory, MemoryMax int64         // bytes; max 0: no limit
	Connections       int
	InFlow            int // of them: they publish more than consumers get processor time for
	Channels          int
	Stats             Stats
}

// Stats count since the broker started.
type Stats struct{ Published, Delivered, Acked, Expired, Unroutable uint64 }

// State returns how the broker is. It is for those who may log in.
func (o *Access) State() State {
	t := o.Broker.Stats()
	blocked, _ := o.Broker.BlockedReason()
	s := State{
		NowMillis: o.Broker.UnixMillis(o.Broker.Now()), Started: o.started, DataDir: o.DataDir, NewFolder: o.Broker.NewFolder(), DiskSilent: o.Broker.DiskSilent(), Blocked: blocked,
		Memory: o.Broker.MemoryInUse(), MemoryMax: o.Broker.MemoryLimit(), InFlow: o.Server.InFlow(),
		Stats: Stats{
			Published: t.Published, Delivered: t.Queues.AllDelivered(), Acked: t.Queues.Acked,
			Expired: t.ExpiredDropped + t.DeadLettered[queue.Expired], Unroutable: t.Unroutable,
		},
	}
	s.Connections, s.Channels = o.Server.Counts()
	return s
}

// Hold asks for memory that a request of a user will take, before it does; release is to be called in any case. What takes more than half of
// all there is counts for half. The error is a *memory.Exceeded.
func (o *Access) Hold(user string, bytes int64) (release func(), err error) {
	clients := o.Broker.Clients()
	if limit := clients.Limit(); limit > 0 {
		bytes = min(bytes, limit/2)
	}
	account := clients.Open(user, func(error) {}) // a form is read within seconds, or cut off
	return account.Close, account.Take(bytes)
}
