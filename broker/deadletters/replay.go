package deadletters

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// ErrRunning is returned when a call is not possible in the replay's state.
var ErrRunning = errors.New("the replay is not in a state for that")

// ErrRequest is wrapped by errors about a request that cannot be carried out.
var ErrRequest = errors.New("the replay cannot be started")

// State is the state of a replay; see the package comment.
type State string

const (
	Running   State = "running"
	Done      State = "done"
	Cancelled State = "cancelled"
	Failed    State = "failed"
)

// Request says what a replay is to do.
type Request struct {
	VHost  string `json:"vhost" hide:"table"`
	Queue  string `json:"queue"`
	User   string `json:"user" hide:"table"` // its owner, whose rights count; empty: all rights
	Filter Filter `json:"filter" hide:"table"`
	Options
	DryRun bool `json:"dry_run" hide:"table"` // it only counts

	// Position is how far the queue is replayed; none: the messages that are in it at the start.
	// With the position from a dry run's answer, the messages that it counted are replayed.
	Position Position `json:"position,omitzero" hide:"table"`
}

// Replay is a replay as it is now: running, or ended.
type Replay struct {
	ID string `json:"id" table:"RUN"`
	Request
	State    State     `json:"state"`                        // running, done, cancelled or failed
	Error    string    `json:"error,omitempty" hide:"table"` // why it failed
	Started  time.Time `json:"started" hide:"table"`
	Ended    time.Time `json:"ended,omitzero" hide:"table"`
	Total    int       `json:"total" hide:"table"`   // ready messages when it was made
	Scanned  int       `json:"scanned" hide:"table"` // looked at
	Matched  int       `json:"matched"`              // by the filter
	Replayed int       `json:"replayed"`
	Skipped  Skips     `json:"left"` // messages that stayed where they are, by reason
	// Targets are the queues that the messages of a dry run would go to, the ones with the most messages first. A message that would be delayed first is not counted there.
	Targets []Target `json:"targets,omitempty" hide:"table"`

	At queue.Seq `json:"at" hide:"table"` // the last message it has examined
}

// Skips are how many messages stayed where they are, by reason.
type Skips map[SkipReason]int

// String has each reason with its number.
func (s Skips) String() string {
	var all []string
	for _, why := range slices.Sorted(maps.Keys(s)) {
		all = append(all, fmt.Sprint(why, "=", s[why]))
	}
	return strings.Join(all, " ")
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

// Job is a replay that is carried out, or was. Safe for concurrent use.
type Job struct {
	b      *broker.Broker
	mu     sync.Mutex
	replay Replay
}

// NewJob makes a replay, which is not begun. Errors: about the request (ErrRequest), its user (ErrOwner) or the queue (404).
func NewJob(b *broker.Broker, o Request) (*Job, error) {
	if o.To == "" && o.Queue == policy.UndeliverableQueue { // at their origin they would mostly die again
		o.To = ToOnward
	}
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	vh, q, err := o.find(b)
	if err != nil {
		return nil, err
	}
	if _, err := vh.Exchanges.Get(o.Exchange); err != nil && o.To == ToExchange {
		return nil, fmt.Errorf("%w: %w", ErrRequest, &OptionError{"exchange", fmt.Sprintf("there is no '%s' in vhost '%s'", o.Exchange, o.VHost)})
	}
	if _, err := o.Position.on(q, o.Filter); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	ready, _, _ := q.Messages.Counts()
	return OldJob(b, Replay{ID: NewRunID(), Request: o, State: Running, Started: time.Now().UTC(), Total: ready}), nil
}

// OldJob is a replay as it was.
func OldJob(b *broker.Broker, replay Replay) *Job {
	if replay.Skipped == nil {
		replay.Skipped = Skips{}
	}
	return &Job{b: b, replay: replay}
}

// NewRunID returns the ID of a new run.
func NewRunID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return time.Now().UTC().Format("20060102-150405-") + hex.EncodeToString(b[:4])
}

// Replay is its state now.
func (j *Job) Replay() Replay {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.replay
	r.Skipped = maps.Clone(r.Skipped)
	return r
}

func (j *Job) change(fn func(*Replay)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fn(&j.replay)
}

// Begun notes that it is carried out, from where it is.
func (j *Job) Begun() {
	j.change(func(r *Replay) { r.State, r.Error, r.Ended = Running, "", time.Time{} })
}

// Finish notes how it has ended.
func (j *Job) Finish(err error) {
	j.change(func(r *Replay) {
		r.Ended, r.State = time.Now().UTC(), StateOf(err)
		if r.State == Failed {
			r.Error = err.Error()
		}
	})
}

// StateOf is how something has ended that returned an error.
func StateOf(err error) State {
	switch {
	case err == nil:
		return Done
	case errors.Is(err, context.Canceled):
		return Cancelled
	}
	return Failed
}

// Do carries the replay out from where it is, and returns when that is on disk. It calls saved after each page. A dry run moves nothing.
func (j *Job) Do(ctx context.Context, saved func() error) error {
	replay := j.Replay()
	vh, q, err := replay.find(j.b)
	if err != nil {
		return err
	}
	p := vh.OwnPublisher()
	if replay.User != "" {
		p = vh.NewPublisher(replay.User)
	}
	one := &replayer{Job: j, q: q, p: p, order: replay.Request, id: replay.ID, saved: saved, targets: targets{}}
	err = one.moveAll(ctx)
	if replay.DryRun {
		j.change(func(replay *Replay) { replay.Targets = one.targets.list(j.b, q) })
		j.Finish(nil)
	}
	return err
}

// MayResume reports whether a replay that has ended may go on, with the rights that its owner has now. Errors: ErrRunning, ErrOwner.
func (j *Job) MayResume() error {
	replay := j.Replay()
	if replay.State != Cancelled && replay.State != Failed {
		return fmt.Errorf("%w: it is %s", ErrRunning, replay.State)
	}
	return replay.checkOwner(j.b)
}

// replayer carries out one replay, in one goroutine.
type replayer struct {
	*Job
	q       *broker.Queue
	p       *broker.Publisher
	order   Request
	id      string
	limiter *rate.Limiter
	targets targets          // of a dry run
	arrives []broker.Arrival // reused
	saved   func() error     // after a page
	limited bool             // it has reached its limit
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
	err = walk(ctx, r.q, Look{After: r.Replay().At, BodyBytes: -1, Position: r.order.Position}, m, func(l *Letter) bool {
		if l.ReplayID == r.id {
			return true
		}
		r.err = r.one(ctx, l)
		return r.err == nil && !r.limited
	}, r.page)
	return errors.Join(err, r.err)
}

// page records that a page is done.
func (r *replayer) page(last queue.Seq, seen int) {
	r.change(func(replay *Replay) {
		replay.At = last
		replay.Scanned = min(replay.Scanned+seen, replay.Total)
	})
	r.err = errors.Join(r.err, r.saved())
}

// one replays a message, or counts why not. If the replay ends before that is decided, the message is not
// counted at all: when the replay is resumed, it comes to the message again.
func (r *replayer) one(ctx context.Context, l *Letter) error {
	if err := r.order.checkOwner(r.b); err != nil {
		return err
	}
	m, skipped := r.order.rewrite(l, r.id, r.b.UnixMillis(r.b.Now()))
	if skipped == "" {
		var err error
		if skipped, err = r.send(ctx, l, &m); err != nil {
			return err
		}
	}
	r.change(func(replay *Replay) {
		replay.At = l.Seq
		replay.Matched++
		if skipped != "" {
			replay.Skipped[skipped]++
			return
		}
		replay.Replayed++
		r.limited = replay.Limit > 0 && replay.Replayed >= replay.Limit
	})
	return nil
}

func (r *replayer) send(ctx context.Context, l *Letter, m *broker.Publication) (SkipReason, error) {
	ref := deadline.Ref{Deadline: l.Deadline, Queue: r.q.ID, Seq: uint64(l.Seq)}
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
	if _, is := errors.AsType[*amqp.Exception](err); is {
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

// find finds the queue to replay, which its owner may read.
func (o *Request) find(b *broker.Broker) (*broker.VHost, *broker.Queue, error) {
	vh, ok := b.VHost(o.VHost)
	if !ok {
		return nil, nil, fmt.Errorf("there is no virtual host %q", o.VHost)
	}
	q, err := vh.Queues.Get(o.Queue)
	if err == nil {
		err = o.checkOwner(b)
	}
	return vh, q, err
}
