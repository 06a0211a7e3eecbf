package schedule

import (
	"context"
	"errors"
	"sync"
	"time"

	"curfew/broker/deadline"
	"curfew/monitor"
	"curfew/scheduler"
)

const (
	// flushEvery is how long a batch collects.
	flushEvery = 5 * time.Millisecond
	// maxBacklog bounds what waits to be written, 24 B each: enough for a second or two
	// without an answer. A removal that finds no room leaves its shadow in Redis, where it
	// is claimed when it is due, found gone, and removed. When there is no room for
	// additions, the backlog is dropped and the schedule is down until it is rebuilt.
	maxBacklog = 1 << 18
	// keepBacklog is how large an emptied buffer may stay.
	keepBacklog = 1 << 14
)

var errBacklog = errors.New("the backlog of writes is full")

// pending is what is to be written. Additions go first: a removal is final, except for
// rescheduled messages, which may get an old deadline back.
type pending struct {
	add    []deadline.Ref
	remove []deadline.Ref
	later  []scheduler.Later
	again  []deadline.Ref // added after the removals
}

func (p *pending) len() int { return len(p.add) + len(p.remove) + len(p.later) + len(p.again) }

func (p *pending) append(more *pending) {
	p.add = append(p.add, more.add...)
	p.remove = append(p.remove, more.remove...)
	p.later = append(p.later, more.later...)
	p.again = append(p.again, more.again...)
}

// reset empties p, and gives back what a burst made large.
func (p *pending) reset() {
	if cap(p.add)+cap(p.remove)+cap(p.later)+cap(p.again) > keepBacklog {
		*p = pending{}
		return
	}
	p.add, p.remove, p.later, p.again = p.add[:0], p.remove[:0], p.later[:0], p.again[:0]
}

// writer is the backlog of writes to Redis. Safe for concurrent use; leaf lock.
type writer struct {
	mu      sync.Mutex
	on      bool // false: what is put is dropped
	waiting pending
	taken   uint64 // shadows ever put
	written uint64 // how many of them were written or dropped
	arrived chan struct{}
}

// put appends to the backlog and returns how many it dropped because there was no room;
// full is true if there were additions among them. A shadow to be put off is added, too,
// in case Redis does not have it.
func (w *writer) put(more pending) (dropped int, full bool) {
	n := more.len()
	if n == 0 {
		return 0, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.on {
		return 0, false
	}
	if w.waiting.len()+n > maxBacklog {
		return n, len(more.add)+len(more.again) > 0
	}
	w.taken += uint64(n)
	w.waiting.append(&more)
	deadline.Wake(w.arrived)
	return 0, false
}

func (w *writer) open() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.on = true
}

// close drops the backlog and whatever is put from now on.
func (w *writer) close(m *metrics) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.on = false
	m.writesDropped.Add(float64(w.waiting.len()))
	w.waiting.reset()
	w.written = w.taken
}

// swap takes the backlog into p, which is empty.
func (w *writer) swap(p *pending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting, *p = *p, w.waiting
}

// wrote counts n shadows as written.
func (w *writer) wrote(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = min(w.written+uint64(n), w.taken)
}

// progress is how many shadows were put and how many of them are written.
func (w *writer) progress() (taken, written uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.taken, w.written
}

// write writes the backlog to Redis. An error marks the schedule as down; it does
// not end the loop.
func (r *redisSchedule) write(ctx context.Context, l *monitor.Loop) error {
	var p pending
	timer := time.NewTimer(monitor.Heartbeat)
	defer timer.Stop()
	for {
		l.Tick()
		timer.Reset(deadline.UntilSecond(time.Now()))
		select {
		case <-r.writer.arrived:
		case <-timer.C:
			continue
		case <-ctx.Done():
			return nil
		}
		if !deadline.Sleep(ctx, flushEvery) {
			return nil
		}
		r.writer.swap(&p)
		n, nearest := p.len(), earlier(earliest(p.add), earliest(p.again))
		if err := r.flush(ctx, &p); err != nil && ctx.Err() == nil {
			r.fail("write", err)
		}
		r.writer.wrote(n)
		p.reset()
		if nearest != 0 {
			r.wakeClaim.wakeFor(nearest.Add(-lookahead / 2))
		}
	}
}

// flush writes p.
func (r *redisSchedule) flush(ctx context.Context, p *pending) error {
	for _, l := range p.later {
		p.add = append(p.add, l.Ref)
	}
	if err := r.apply(ctx, p.add, nil); err != nil {
		return err
	}
	if err := r.rescore(ctx, p.later); err != nil {
		return err
	}
	if err := r.apply(ctx, nil, p.remove); err != nil {
		return err
	}
	return r.apply(ctx, p.again, nil)
}

// apply writes additions or removals in bounded calls, timed and counted.
func (r *redisSchedule) apply(ctx context.Context, add, remove []deadline.Ref) (err error) {
	for err == nil && len(add)+len(remove) > 0 {
		n, m := min(len(add), pageSize), min(len(remove), pageSize)
		call, cancel := context.WithTimeout(ctx, callTimeout)
		started := time.Now()
		err = r.store.Apply(call, add[:n], remove[:m])
		cancel()
		r.metrics.wrote(n, m, time.Since(started), err)
		add, remove = add[n:], remove[m:]
	}
	return err
}

// rescore gives shadows another instant to be claimed at.
func (r *redisSchedule) rescore(ctx context.Context, later []scheduler.Later) error {
	if len(later) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.store.Settle(ctx, nil, later)
}
