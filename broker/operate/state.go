package operate

import (
	"context"
	"time"

	"github.com/dustin/go-humanize"

	"curfew/broker/memory"
)

// State is the state of the broker at one moment.
type State struct {
	NowMillis         int64 // Unix ms by the clock that deadlines are shown by
	ManualClock       bool  // that clock stands until it is moved
	Started           time.Time
	DataDir           string        // "": memory only
	NewFolder         bool          // DataDir held no broker data at this start
	DiskFree          int64         // bytes, where DataDir is; -1: not known
	DiskSilent        time.Duration // how long the disk has not answered; 0: it answers
	Blocked           string        // why publishers have to wait; "": they need not
	Memory, MemoryMax int64         // bytes; max 0: no limit
	Connections       int
	InFlow            int // of them: they publish faster than consumers take, and had to wait within the last second
	Channels          int
}

// Storage is where messages are kept, in words, and what to know about that. warn says that it is a warning.
func (s *State) Storage() (where, more string, warn bool) {
	switch {
	case s.DataDir == "" && s.ManualClock:
		return "memory only", "for tests", false
	case s.DataDir == "":
		return "memory only", "a restart loses every message; set CURFEW_DATA_DIR", true
	}
	more = s.DataDir
	if s.DiskFree >= 0 {
		more += ", " + humanize.IBytes(uint64(s.DiskFree)) + " free"
	}
	if s.NewFolder {
		more += "; the folder was empty at this start: if Curfew had run before, its volume is not mounted or CURFEW_DATA_DIR has changed"
	}
	return "on disk", more, false
}

// State returns the state of the broker. Every user who may log in may see it.
func (o *Operations) State() State {
	s := State{
		NowMillis: o.Broker.UnixMillis(o.Broker.Now()), ManualClock: o.Broker.Manual != nil, Started: o.started, DataDir: o.DataDir, NewFolder: o.Broker.NewFolder(), DiskSilent: o.Broker.DiskSilent(), Blocked: o.Broker.Alarm.Last(),
		Memory: o.Broker.Alarm.MemoryInUse(), MemoryMax: o.Broker.Alarm.MemoryLimit, InFlow: o.Server.InFlow(),
	}
	s.DiskFree, _ = o.Broker.Alarm.Disk()
	s.Connections, s.Channels = o.Server.Counts()
	return s
}

// memoryKey is the key of a request's account in its context.
type memoryKey struct{}

// WithMemory returns a context with the account that the answer to a request is paid from.
func WithMemory(ctx context.Context, account *memory.Account) context.Context {
	return context.WithValue(ctx, memoryKey{}, account)
}

// Take draws what an answer will take from the account of its request, at most half of the budget; without an account it does nothing. Error: *memory.Exceeded.
func Take(ctx context.Context, bytes int64) error {
	account, is := ctx.Value(memoryKey{}).(*memory.Account)
	if !is {
		return nil
	}
	if limit := account.Budget.Limit; limit > 0 {
		bytes = min(bytes, limit/2)
	}
	return account.Take(bytes)
}

// Hold draws from the budget what a user's request will take; release must be called in any case. More than half of the budget counts as half.
// The error is a *memory.Exceeded.
func (o *Operations) Hold(user string, bytes int64) (release func(), err error) {
	clients := o.Broker.Clients
	if limit := clients.Limit; limit > 0 {
		bytes = min(bytes, limit/2)
	}
	account := clients.Open(user, func(error) {}) // a form is read within seconds, or its connection is closed
	return account.Close, account.Take(bytes)
}
