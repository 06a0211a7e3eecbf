package monitor

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"curfew/monitor/alert"
	"curfew/scheduler"
	"curfew/scheduler/redisstore"
)

// Schedule is a schedule that outlives the process: a *redisstore.Store.
type Schedule interface {
	scheduler.Store
	// Epoch says whether what is stored is what Begin found, and renews the
	// ownership.
	Epoch(ctx context.Context) (ok bool, err error)
	// Refresh renews the ownership. It is due every redisstore.RefreshEvery.
	Refresh(ctx context.Context) error
	// Begin takes the schedule into possession. Another process's is refused.
	Begin(ctx context.Context) error
	// Scan names every stored shadow, each at least once, in pages that fn may
	// change but not keep.
	Scan(ctx context.Context, fn func(page []scheduler.Shadow) error) error
	// Check looks at the server and its settings.
	Check(ctx context.Context) (redisstore.Status, error)
}

// Registry is where instances see of each other that they live. All methods are
// called by one loop but NameQueues. A *redisstore.Store is one.
type Registry interface {
	// Beat says that this instance lives. It is due every redisstore.RefreshEvery.
	Beat(ctx context.Context) error
	// Peers names the other instances; an entry stays the same between two beats.
	Peers(ctx context.Context) ([]redisstore.Peer, error)
	// Watch says whether it is this instance's turn to speak for p.
	Watch(ctx context.Context, p redisstore.Peer) (mine bool, err error)
	// Missed counts what is due in the schedule of p.
	Missed(ctx context.Context, p redisstore.Peer) (redisstore.Missed, error)
	// Forget drops p until it beats again.
	Forget(ctx context.Context, p redisstore.Peer) error
	// NameQueues notes the names of queues for other instances.
	NameQueues(ctx context.Context, queues []redisstore.QueueName) error
	// PruneQueues removes the names of queues that keep does not want.
	PruneQueues(ctx context.Context, keep func(queue uint64) bool) (kept []uint64, err error)
}

// Options of a Monitor. Primary is required.
type Options struct {
	Primary Primary
	// Redis holds the schedule; nil (or a nil *redisstore.Store) keeps it in the
	// process alone. One that is a Registry, too, has instances watch each other. The
	// caller closes it after Run.
	Redis Schedule
	// Log; nil is silent.
	Log *zap.Logger
	// Registerer takes the metrics; nil keeps them private.
	Registerer prometheus.Registerer
	// Alerts is told of missed deadlines, and run by Run; nil for none.
	Alerts *alert.Alerts
	// WriteWindow is how long a shadow waits for its message to be settled before
	// it is indexed and written, so that one settled soon costs neither; a shadow
	// whose deadline is within two windows does not wait. 0 is 20 ms. Below 0 none waits,
	// and Redis is written each that the feed tells of, be it settled or due by then.
	WriteWindow time.Duration
	// MissThreshold is the lateness from which a deadline counts as fired late;
	// 0 is 1 s.
	MissThreshold time.Duration
	// RiskShare is the part of its time to live, 0 to 1, that the first message that will
	// miss its deadline must have used up before its queue is told to be at risk; 0 is
	// 0.5.
	RiskShare float64
	// NewTimer makes the timer that fires deadlines, such as PreciseTimer; nil is
	// the runtime's, up to a millisecond late.
	NewTimer func() (Timer, error)
}

const (
	defaultWriteWindow   = 20 * time.Millisecond
	defaultMissThreshold = time.Second
)

func (o Options) withDefaults() (Options, error) {
	if o.Primary == nil {
		return o, errors.New("monitor: Options.Primary is missing")
	}
	if s, ok := o.Redis.(*redisstore.Store); ok && s == nil {
		o.Redis = nil
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	if o.WriteWindow == 0 {
		o.WriteWindow = defaultWriteWindow
	}
	if o.NewTimer == nil {
		o.NewTimer = func() (Timer, error) { return newRuntimeTimer(), nil }
	}
	if o.RiskShare == 0 {
		o.RiskShare = defaultRiskShare
	}
	if o.MissThreshold == 0 {
		o.MissThreshold = defaultMissThreshold
	}
	return o, nil
}
