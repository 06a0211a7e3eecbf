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

// State is where a replay is in its life; see the package comment.
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

	// Position is how far the queue is replayed; none: what is there at the start. That of
	// a dry run's answer replays what the dry run counted.
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
	Skipped  map[SkipReason]int `json:"left"` // messages that stayed where they are, by why
	// Targets are, of a dry run, where the messages would go, those with the most first. One that is delayed first goes nowhere yet.
	Targets []Target `json:"targets,omitempty"`

	QueueID uint64      `json:"queue_id"` // the queue's incarnation
	UpTo    []queue.Seq `json:"up_to"`    // the queue's last messages by priority when the run was made
	At      queue.Seq   `json:"at"`       // where the run is
}

// job is a replay that can be worked on. Its Replay is guarded by mu, the rest by Replays.mu.
type job struct {
	mu     sync.Mutex
	run    Replay
	cancel context.CancelFunc // nil: it was never under way in this process
	ended  chan struct{}      // likewise; closed when it no longer is
}

func (j *job) snapshot() Replay {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.run
	r.Skipped = maps.Clone(r.Skipped)
	return r
}

func (j *job) change(fn func(*Replay)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fn(&j.run)
}

// errLimit ends a run that has moved as many as it was to.
var errLimit = errors.New("limit reached")

// replayer carries out one replay, in one goroutine.
type replayer struct {
	*job
	b       *broker.Broker
	q       *broker.Queue
	p       *broker.Publisher
	order   Request
	id      string
	upTo    Position
	limiter *rate.Limiter
	targets targets          // of a dry run
	arrives []broker.Arrival // reused
	saved   func() error     // after a page
	err     error
}

// replay jobs until the end of the queue as it was, an error or ctx's end.
func (r *replayer) replay(ctx context.Context) error {
	m, err := r.order.Filter.compile()
	if err != nil {
		return err
	}
	r.limiter = rate.NewLimiter(rate.Inf, 0)
	if r.order.Rate > 0 {
		r.limiter = rate.NewLimiter(rate.Limit(r.order.Rate), 1)
	}
	err = walk(ctx, r.q, way{after: r.snapshot().At, bodyBytes: -1}, m, func(l *Letter) bool {
		if !r.upTo.includes(l.Seq) || l.Run == r.id {
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

// page notes that a page is done.
func (r *replayer) page(last queue.Seq, seen int) {
	r.change(func(run *Replay) {
		run.At = last
		run.Scanned = min(run.Scanned+seen, run.Total)
	})
	if err := r.saved(); err != nil && r.err == nil {
		r.err = err
	}
}

// one replays a message, or counts why not. Where the run ends before that is settled, the message is not
// counted at all: a run that is resumed meets it again.
func (r *replayer) one(ctx context.Context, l *Letter) error {
	if err := r.order.checkOwner(r.b); err != nil {
		return err
	}
	m, left := r.order.rewrite(l, r.id, unixMillis(r.b))
	if left == "" {
		var err error
		if left, err = r.send(ctx, l, &m); err != nil {
			return err
		}
	}
	limited := false
	r.change(func(run *Replay) {
		run.At = l.Seq
		run.Matched++
		if left != "" {
			run.Skipped[left]++
			return
		}
		run.Replayed++
		limited = run.Limit > 0 && run.Replayed >= run.Limit
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

// skipReason tells what concerns one message from what ends the run.
func skipReason(outcome broker.MoveOutcome, err error) (SkipReason, error) {
	var e *amqp.Exception
	if errors.As(err, &e) {
		return SkippedRefused, nil
	}
	return skipReasons[outcome], err
}

// waitWhileBlocked waits while publishers have to.
func (r *replayer) waitWhileBlocked(ctx context.Context) error {
	for {
		reason, changed := r.b.BlockedReason()
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

// find looks for the run's queue, which has to be the one it was made for.
func (o *Request) find(b *broker.Broker) (*broker.VHost, *broker.Queue, error) {
	vh, ok := b.VHost(o.VHost)
	if !ok {
		return nil, nil, fmt.Errorf("there is no virtual host %q", o.VHost)
	}
	q, err := vh.Queue(o.Queue)
	return vh, q, err
}

// byAge orders them by age.
func byAge(runs []Replay) {
	slices.SortFunc(runs, func(a, b Replay) int { return a.Started.Compare(b.Started) })
}
