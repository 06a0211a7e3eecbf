package broker

import (
	"context"

	"curfew/broker/queue"
)

// Expires says whether messages expire: false with Options.TTLOff.
func (b *Broker) Expires() bool { return !b.opts.TTLOff }

// ExpireOutcome is the broker's answer to an Expire.
type ExpireOutcome uint8

const (
	// Expired: it has left its queue. Its dead letter is on its way (WatchExpiries).
	Expired ExpireOutcome = iota
	// Gone: it left before, or never was.
	Gone
	// Held: it is unacked; if it comes back, it expires there and then.
	Held
	// NotDue: its deadline is still ahead.
	NotDue
	// Rescheduled: it has the new deadline (Reschedule).
	Rescheduled
)

// ExpireResult says what Expire did about one message.
type ExpireResult struct {
	Outcome ExpireOutcome
	At      int64 // Unix µs: Expired: when it left; NotDue: its deadline
}

// expireAtOnce bounds how many messages of one queue expire under one lock, so
// that publishers and consumers get their turn in a storm.
const expireAtOnce = 256

// Expire removes the named messages whose deadline has come, wherever they stand
// in their queues: dead-lettered if the queue has a dead-letter exchange, else
// dropped. It appends one result per ref, in order. It may be repeated: a message expires
// once. Refs of one queue are best given together. path says who asks: Eager, Index
// or Stalled. It does not wait for dead letters to arrive: WatchExpiries tells of that.
func (b *Broker) Expire(refs []MessageRef, path Path, out []ExpireResult) []ExpireResult {
	s := b.hurry()
	for i := 0; i < len(refs); {
		n := 1
		for n < expireAtOnce && i+n < len(refs) && refs[i+n].Queue == refs[i].Queue {
			n++
		}
		out = s.expireRun(refs[i:i+n], path, out)
		i += n
	}
	s.done()
	return out
}

// expireRun expires refs of one queue under one lock.
func (s *step) expireRun(refs []MessageRef, path Path, out []ExpireResult) []ExpireResult {
	q := s.b.queueByID(refs[0].Queue)
	if q == nil {
		for range refs {
			out = append(out, ExpireResult{Outcome: Gone})
		}
		return out
	}
	q.lock(s)
	defer q.mu.Unlock()
	for _, ref := range refs {
		outcome, deadline := q.core.Expire(s.now, queue.Seq(ref.Seq), ref.Deadline, &s.fx)
		out = append(out, s.expireResult(outcome, deadline))
	}
	q.finish(s, path)
	return out
}

func (s *step) expireResult(outcome queue.Outcome, deadline int64) ExpireResult {
	switch outcome {
	case queue.Fired:
		return ExpireResult{Outcome: Expired, At: s.now}
	case queue.Held:
		return ExpireResult{Outcome: Held}
	case queue.NotDue:
		return ExpireResult{Outcome: NotDue, At: deadline}
	}
	return ExpireResult{Outcome: Gone}
}

// TrackDeadlines keeps, in place and order, the refs whose messages are still
// queued, and asks that their leaving be told (DeadlineSettled).
func (b *Broker) TrackDeadlines(refs []MessageRef) []MessageRef {
	kept := refs[:0]
	var q *Queue
	for i := 0; i < len(refs); {
		id := refs[i].Queue
		if q = b.queueByID(id); q == nil {
			for i < len(refs) && refs[i].Queue == id {
				i++
			}
			continue
		}
		q.mu.Lock()
		for n := 0; i < len(refs) && refs[i].Queue == id && n < expireAtOnce; i, n = i+1, n+1 {
			if q.core.Track(queue.Seq(refs[i].Seq), refs[i].Deadline) {
				kept = append(kept, refs[i])
			}
		}
		q.mu.Unlock()
	}
	return kept
}

// deadlinesPage is how many entries of a queue are read under one lock.
const deadlinesPage = 1024

// Deadlines calls fn with every queued message that has a deadline, in pages
// that are valid during the call; from then on their leaving is told. Messages
// that come or go meanwhile may be missing or left over: the feed has them. The
// error is fn's or ctx's.
func (b *Broker) Deadlines(ctx context.Context, fn func([]MessageRef) error) error {
	b.feed.subscribe()
	page := make([]MessageRef, 0, deadlinesPage)
	for _, q := range b.allQueues() {
		for from, more := queue.Seq(0), true; more; {
			page, from, more = q.deadlines(from, page[:0])
			if err := ctx.Err(); err != nil {
				return err
			}
			if len(page) == 0 {
				continue
			}
			if err := fn(page); err != nil {
				return err
			}
		}
	}
	return nil
}

// allQueues are those that were declared.
func (b *Broker) allQueues() []*Queue {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.declaredQueues()
}

// declaredQueues is allQueues for callers who hold mu.
func (b *Broker) declaredQueues() []*Queue {
	all := make([]*Queue, 0, len(b.byID))
	for _, q := range b.byID {
		if q.delays == nil {
			all = append(all, q)
		}
	}
	return all
}

// deadlines reads a page of the queue's deadlines from a sequence number on.
func (q *Queue) deadlines(from queue.Seq, page []MessageRef) (_ []MessageRef, next queue.Seq, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	seen := 0
	q.core.Each(from, func(seq queue.Seq, m queue.Message, _ queue.State) bool {
		if seen == deadlinesPage {
			next, more = seq, true
			return false
		}
		seen++
		if m.ExpiresAt != 0 {
			page = append(page, q.ref(seq, m.ExpiresAt))
		}
		return true
	})
	for _, ref := range page {
		q.core.Track(queue.Seq(ref.Seq), ref.Deadline)
	}
	return page, next, more
}
