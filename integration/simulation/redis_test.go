package simulation

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"curfew/broker/deadline"
	"curfew/scheduler"
	"curfew/scheduler/redisstore"
)

// redis is a model of a schedule in Redis, with its faults. Each monitor has its own
// handle. All runs of the broker share it, like a real one.
type redis struct {
	mu sync.Mutex
	redisData
	replica redisData // as of the last replication

	processes, epochs int      // given out so far
	shared            *process // of the monitors that run in one process

	// The faults.
	away    bool          // refuses connections
	silent  bool          // never answers
	slow    time.Duration // each way
	deafFor int           // the replies to this number of calls will be lost, although they are executed
}

// redisData is the data that a replica also has.
type redisData struct {
	scores  map[deadline.Ref]deadline.Instant
	epoch   int // 0: none
	owner   int
	ownedTo time.Time
	run     int // which server process
}

func newRedis() *redis {
	return &redis{redisData: redisData{scores: map[deadline.Ref]deadline.Instant{}}}
}

var (
	errAway  = errors.New("connection refused")
	errReply = errors.New("connection reset, reply lost")
)

func (d redisData) copied() redisData {
	d.scores = maps.Clone(d.scores)
	return d
}

func (r *redis) with(fn func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fn()
}

// replicate brings the replica up to date.
func (r *redis) replicate() { r.with(func() { r.replica = r.copied() }) }

// failover promotes the replica, whatever it has missed.
func (r *redis) failover() {
	r.with(func() {
		run := r.run + 1
		if r.replica.scores == nil {
			r.replica.scores = map[deadline.Ref]deadline.Instant{}
		}
		r.redisData = r.replica.copied()
		r.run = run
	})
}

// flush empties Redis (FLUSHALL).
func (r *redis) flush() {
	r.with(func() { r.redisData = redisData{scores: map[deadline.Ref]deadline.Instant{}, run: r.run} })
}

// evict drops some shadows without notice.
func (r *redis) evict(doomed func() bool) {
	r.with(func() {
		for _, s := range slices.SortedFunc(maps.Keys(r.scores), deadline.Ref.Compare) {
			if doomed() {
				delete(r.scores, s)
			}
		}
	})
}

func (r *redis) heal() {
	r.with(func() { r.away, r.silent, r.slow, r.deafFor = false, false, 0, 0 })
}

// process is the owner of the schedule, and what it has begun.
type process struct{ id, epoch, run int }

// handle is a monitor's connection. It implements schedule.RedisStore.
type handle struct {
	r       *redis
	monitor *stoppable
	*process
}

// handle connects a monitor: one with a process of its own, or one in the process that
// several monitors share.
func (r *redis) handle(monitor *stoppable, shares bool) *handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	if shares && r.shared != nil {
		return &handle{r, monitor, r.shared}
	}
	r.processes++
	p := &process{id: r.processes}
	if shares {
		r.shared = p
	}
	return &handle{r, monitor, p}
}

// restarted ends the process that monitors share.
func (r *redis) restarted() { r.with(func() { r.shared = nil }) }

// call runs a command through the present faults.
func (h *handle) call(ctx context.Context, command func() error) error {
	h.monitor.wait()
	defer h.monitor.wait()
	var away, silent bool
	var slow time.Duration
	h.r.with(func() { away, silent, slow = h.r.away, h.r.silent, h.r.slow })
	switch {
	case silent:
		<-ctx.Done()
		return ctx.Err()
	case away:
		return errAway
	}
	if err := pause(ctx, slow); err != nil {
		return err
	}
	var lost bool
	var err error
	h.r.with(func() {
		if h.r.deafFor > 0 {
			h.r.deafFor--
			lost = true
		}
		err = command()
	})
	if err := pause(ctx, slow); err != nil {
		return err
	}
	if lost {
		return errReply
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// own takes or renews the ownership. It is called within a command.
func (h *handle) own() error {
	if h.r.owner != h.id && h.r.owner != 0 && time.Now().Before(h.r.ownedTo) {
		return redisstore.ErrOwned
	}
	h.r.owner, h.r.ownedTo = h.id, time.Now().Add(redisstore.OwnerLease)
	return nil
}

// Apply implements scheduler.Store.
func (h *handle) Apply(ctx context.Context, add, remove []deadline.Ref) error {
	add, remove = slices.Clone(add), slices.Clone(remove)
	return h.call(ctx, func() error {
		for _, s := range add {
			h.r.scores[s] = s.Deadline
		}
		for _, s := range remove {
			delete(h.r.scores, s)
		}
		return nil
	})
}

// Claim implements scheduler.Store.
func (h *handle) Claim(ctx context.Context, until deadline.Instant, most int, leaseUntil deadline.Instant, out []deadline.Ref) ([]deadline.Ref, deadline.Instant, error) {
	var claimed []deadline.Ref
	var next deadline.Instant
	err := h.call(ctx, func() error {
		inOrder := slices.SortedFunc(maps.Keys(h.r.scores), func(a, b deadline.Ref) int {
			return cmp.Or(cmp.Compare(h.r.scores[a], h.r.scores[b]), a.Compare(b))
		})
		for _, s := range inOrder {
			if h.r.scores[s] <= until && len(claimed) < most {
				claimed = append(claimed, s)
			}
		}
		for _, s := range claimed {
			h.r.scores[s] = leaseUntil
		}
		for _, at := range h.r.scores {
			if next == 0 || at < next {
				next = at
			}
		}
		return nil
	})
	if err != nil {
		return out, 0, err
	}
	return append(out, claimed...), next, nil
}

// Settle implements scheduler.Store.
func (h *handle) Settle(ctx context.Context, done []deadline.Ref, later []scheduler.Later) error {
	done, later = slices.Clone(done), slices.Clone(later)
	return h.call(ctx, func() error {
		for _, s := range done {
			delete(h.r.scores, s)
		}
		for _, l := range later {
			if _, there := h.r.scores[l.Ref]; there {
				h.r.scores[l.Ref] = l.At
			}
		}
		return nil
	})
}

// Len implements scheduler.Store.
func (h *handle) Len(ctx context.Context) (n int64, err error) {
	err = h.call(ctx, func() error { n = int64(len(h.r.scores)); return nil })
	return n, err
}

// Close implements scheduler.Store.
func (h *handle) Close() error { return nil }

// Epoch implements schedule.RedisStore.
func (h *handle) Epoch(ctx context.Context) (ok bool, err error) {
	err = h.call(ctx, func() error {
		if err := h.own(); err != nil {
			return err
		}
		ok = h.epoch != 0 && h.r.epoch == h.epoch && h.r.run == h.process.run
		return nil
	})
	return ok && err == nil, err
}

// Refresh implements schedule.RedisStore.
func (h *handle) Refresh(ctx context.Context) error { return h.call(ctx, h.own) }

// Begin implements schedule.RedisStore.
func (h *handle) Begin(ctx context.Context) error {
	var epoch, run int
	err := h.call(ctx, func() error {
		if err := h.own(); err != nil {
			return err
		}
		h.r.epochs++
		h.r.epoch = h.r.epochs
		epoch, run = h.r.epoch, h.r.run
		return nil
	})
	if err == nil {
		h.r.with(func() { h.epoch, h.process.run = epoch, run })
	}
	return err
}

// Scan implements schedule.RedisStore.
func (h *handle) Scan(ctx context.Context, fn func(page []deadline.Ref) error) error {
	var all []deadline.Ref
	err := h.call(ctx, func() error {
		all = slices.SortedFunc(maps.Keys(h.r.scores), deadline.Ref.Compare)
		return nil
	})
	for page := range slices.Chunk(all, 50) {
		if err == nil {
			err = fn(page)
		}
	}
	return err
}

// Check implements schedule.RedisStore.
func (h *handle) Check(ctx context.Context) (scheduler.Status, error) {
	return scheduler.Status{}, h.call(ctx, func() error { return nil })
}
