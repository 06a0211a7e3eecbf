package deadletters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// State is the state of a replay; see the package comment.
type State string

const (
	Running   State = "running"
	Done      State = "done"
	Cancelled State = "cancelled"
	Failed    State = "failed"
)

// Request says what a replay is to do. DryRun only counts.
type Request struct {
	VHost  string `json:"vhost"`
	Queue  string `json:"queue"`
	User   string `json:"user"` // its owner, whose rights count; empty: all rights
	Filter Filter `json:"filter"`
	Options
	DryRun bool `json:"dry_run"` // it only counts

	// Position is how far the queue is replayed; none: the messages that are in it at the start.
	// With the position from a dry run's answer, the messages that it counted are replayed.
	Position Position `json:"position,omitzero"`
}

// Replay is a replay as it is now: running, or ended.
type Replay struct {
	ID string `json:"id"`
	Request
	State    State              `json:"state"`           // running, done, cancelled or failed
	Error    string             `json:"error,omitempty"` // why it failed
	Started  time.Time          `json:"started"`
	Ended    time.Time          `json:"ended,omitzero"`
	Total    int                `json:"total"`   // ready messages when it was made
	Scanned  int                `json:"scanned"` // looked at
	Matched  int                `json:"matched"` // by the filter
	Replayed int                `json:"replayed"`
	Skipped  map[SkipReason]int `json:"left"` // messages that stayed where they are, by reason
	// Targets are the queues that the messages of a dry run would go to, the ones with the most messages first. A message that would be delayed first is not counted there.
	Targets []Target `json:"targets,omitempty"`

	At queue.Seq `json:"at"` // the last message it has examined
}

// Share is how much of a replay is done, from 0 to 1. The number of scanned messages grows page by page, that of matches is known at once. With a
// limit the replay may end long before it reaches the end of the queue.
func (replay *Replay) Share() float64 {
	if replay.State == Done || replay.Total == 0 {
		return 1
	}
	share := float64(max(replay.Scanned, replay.Matched)) / float64(replay.Total)
	if replay.Limit > 0 {
		share = max(share, float64(replay.Replayed)/float64(replay.Limit))
	}
	return min(share, 1)
}

// job is a replay with the goroutine that works on it. Its Replay is guarded by mu, the rest by Replays.mu.
type job struct {
	mu     sync.Mutex
	replay Replay
	cancel context.CancelFunc // nil: it has not run in this process
	ended  chan struct{}      // nil as well then; closed when it stops
}

func (j *job) snapshot() Replay {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.replay
	r.Skipped = maps.Clone(r.Skipped)
	return r
}

func (j *job) change(fn func(*Replay)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fn(&j.replay)
}

// errLimit ends a replay that has reached its limit.
var errLimit = errors.New("limit reached")

// replayer carries out one replay, in one goroutine.
type replayer struct {
	*job
	b       *broker.Broker
	q       *broker.Queue
	p       *broker.Publisher
	order   Request
	id      string
	limiter *rate.Limiter
	targets targets          // of a dry run
	arrives []broker.Arrival // reused
	saved   func() error     // after a page
	err     error
}

// moveAll moves messages until the end of the queue as it was, an error, or the end of ctx.
func (r *replayer) moveAll(ctx context.Context) error {
	m, err := r.order.Position.on(r.q, r.order.Filter)
	if err != nil {
		return err
	}
	r.limiter = rate.NewLimiter(rate.Inf, 0)
	if r.order.Rate > 0 {
		r.limiter = rate.NewLimiter(rate.Limit(r.order.Rate), 1)
	}
	err = walk(ctx, r.q, way{after: r.snapshot().At, bodyBytes: -1, upTo: r.order.Position}, m, func(l *Letter) bool {
		if l.ReplayID == r.id {
			return true
		}
		r.err = r.one(ctx, l)
		return r.err == nil
	}, r.page)
	if err = errors.Join(err, r.err); errors.Is(err, errLimit) {
		return nil
	}
	return err
}

// page records that a page is done.
func (r *replayer) page(last queue.Seq, seen int) {
	r.change(func(replay *Replay) {
		replay.At = last
		replay.Scanned = min(replay.Scanned+seen, replay.Total)
	})
	if err := r.saved(); err != nil && r.err == nil {
		r.err = err
	}
}

// one replays a message, or counts why not. If the replay ends before that is decided, the message is not
// counted at all: when the replay is resumed, it comes to the message again.
func (r *replayer) one(ctx context.Context, l *Letter) error {
	if err := r.order.checkOwner(r.b); err != nil {
		return err
	}
	m, skipped := r.order.rewrite(l, r.id, unixMillis(r.b))
	if skipped == "" {
		var err error
		if skipped, err = r.send(ctx, l, &m); err != nil {
			return err
		}
	}
	limited := false
	r.change(func(replay *Replay) {
		replay.At = l.Seq
		replay.Matched++
		if skipped != "" {
			replay.Skipped[skipped]++
			return
		}
		replay.Replayed++
		limited = replay.Limit > 0 && replay.Replayed >= replay.Limit
	})
	if limited {
		return errLimit
	}
	return nil
}

func (r *replayer) send(ctx context.Context, l *Letter, m *broker.Publication) (SkipReason, error) {
	ref := deadline.Ref{Deadline: l.Deadline, Queue: r.q.ID(), Seq: uint64(l.Seq)}
	if r.order.DryRun {
		outcome, to, err := r.p.CanMove(ref, m, r.arrives[:0])
		r.targets.add(to)
		r.arrives = to
		return skipReason(outcome, err)
	}
	if err := r.limiter.Wait(ctx); err != nil {
		return "", ctx.Err()
	}
	if err := r.waitWhileBlocked(ctx); err != nil {
		return "", err
	}
	return skipReason(r.p.Move(ref, m, r.order.KeepDeaths && len(l.Deaths) > 0))
}

// skipReason separates what concerns one message from an error that ends the replay.
func skipReason(outcome broker.MoveOutcome, err error) (SkipReason, error) {
	var e *amqp.Exception
	if errors.As(err, &e) {
		return SkippedRefused, nil
	}
	return skipReasons[outcome], err
}

// waitWhileBlocked waits while publishers are blocked.
func (r *replayer) waitWhileBlocked(ctx context.Context) error {
	for {
		reason, changed := r.b.Alarm.Reason()
		if reason == "" {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// find finds the queue to replay.
func (o *Request) find(b *broker.Broker) (*broker.VHost, *broker.Queue, error) {
	vh, ok := b.VHost(o.VHost)
	if !ok {
		return nil, nil, fmt.Errorf("there is no virtual host %q", o.VHost)
	}
	q, err := vh.Queues.Get(o.Queue)
	return vh, q, err
}

// byAge orders replays by age, the oldest first.
func byAge(list []Replay) {
	slices.SortFunc(list, func(a, b Replay) int { return a.Started.Compare(b.Started) })
}
