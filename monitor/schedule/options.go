package schedule

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/incident"
	"curfew/scheduler"
)

// RedisStore is a schedule that outlives the process, such as a redisstore.Store.
type RedisStore interface {
	scheduler.Store
	// Epoch reports whether the schedule is still the one that Begin took, and renews the
	// ownership.
	Epoch(ctx context.Context) (ok bool, err error)
	// Refresh renews the ownership. It is due every scheduler.RefreshEvery.
	Refresh(ctx context.Context) error
	// Begin takes ownership of the schedule. It fails if another process owns it.
	Begin(ctx context.Context) error
	// Scan calls fn with every stored shadow, each at least once, in pages that fn may
	// change but not keep.
	Scan(ctx context.Context, fn func(page []deadline.Ref) error) error
	// Check inspects the server and its settings.
	Check(ctx context.Context) (scheduler.Status, error)
}

// Options of a Scheduler. Primary is required.
type Options struct {
	Primary Primary
	// PrimaryIsNew says that the primary began empty, without the messages of an earlier run. The shadows that Redis has
	// for this instance then belong to messages that are lost, or elsewhere.
	PrimaryIsNew bool
	// Redis holds the schedule; nil keeps it in this process only. The caller closes it
	// after Run.
	Redis RedisStore
	// Log; nil is silent.
	Log *zap.Logger
	// Registerer takes the metrics; nil keeps them private.
	Registerer prometheus.Registerer
	// Meant reports whether an expiry in a queue is no loss; nil: each is one.
	Meant func(vhost, queue string) bool
	// Record is told what becomes of deadlines; nil: nobody. It is called by several goroutines, and must not block.
	Record func(incident.Event)
	// WriteWindow is how long a shadow waits for its message to be settled before it is
	// indexed and written, so that a message settled soon costs neither. A shadow whose
	// deadline is within two windows does not wait. 0 is 20 ms. Below 0 none waits, and
	// every shadow in the feed is written to Redis, even if its message is settled or due
	// by then.
	WriteWindow time.Duration
	// Stepped says that no loop reads, indexes or fires deadlines: whoever moves the primary's clock calls Step. It goes
	// with neither Redis nor a WriteWindow.
	Stepped bool
	// NewTimer makes the timer that fires deadlines, such as PreciseTimer. nil is the Go
	// runtime's, which is up to a millisecond late.
	NewTimer func() (Timer, error)
}

const defaultWriteWindow = 20 * time.Millisecond

func (o Options) withDefaults() (Options, error) {
	if o.Primary == nil {
		return o, errors.New("schedule: Options.Primary is missing")
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	o.Registerer = cmp.Or[prometheus.Registerer](o.Registerer, prometheus.NewRegistry())
	if o.Record == nil {
		o.Record = func(incident.Event) {}
	}
	if o.Stepped && o.Redis != nil {
		return o, errors.New("schedule: Options.Stepped does not go with Redis")
	}
	if o.Stepped {
		o.WriteWindow = -1
	}
	o.WriteWindow = cmp.Or(o.WriteWindow, defaultWriteWindow)
	if o.NewTimer == nil {
		o.NewTimer = runtimeTimer
	}
	return o, nil
}
