package broker

import (
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// Retroaction says what becomes of messages that are queued already when a
// policy's time to live is applied to them too.
type Retroaction struct {
	Queues  int `json:"queues"`  // governed by the policy, and with a time to live
	Earlier int `json:"earlier"` // messages whose deadline comes, or is now, earlier than it was; those without one among them
	Expired int `json:"expired"` // messages that expire at once: the time to live is 0
}

// SetPolicyRetroactively is SetPolicy, and then holds the messages that are queued
// already to the time to live too: it counts from now, since when a message came
// is not known, and no deadline becomes a later one. Where a message's own time to
// live goes before its queue's (MessageFirst), only messages without a deadline
// are given one. A crash on the way leaves some messages as they were; it may be
// repeated. It returns when what it did is as durable as the store's mode promises.
func (vh *VHost) SetPolicyRetroactively(k policy.Kind, p policy.Policy) (created bool, done Retroaction, err error) {
	if created, err = vh.SetPolicy(k, p); err != nil {
		return false, Retroaction{}, err
	}
	vh.mu.RLock()
	all := vh.all()
	vh.mu.RUnlock()
	for _, q := range governedBy(k, p.Name, all) {
		done.add(&q, false)
	}
	committed := make(chan error, 1)
	vh.b.Commit(func(err error) { committed <- err })
	return created, done, <-committed
}

// TryPolicyRetroactively says what SetPolicyRetroactively would do, as things
// stand, and does nothing. Error: *policy.Invalid.
func (vh *VHost) TryPolicyRetroactively(k policy.Kind, p policy.Policy) (would Retroaction, err error) {
	if p, err = vh.checkPolicy(k, p); err != nil {
		return Retroaction{}, err
	}
	all, err := vh.tryPolicies(func(sets *[2]policy.Set) { sets[k] = sets[k].With(p) })
	if err != nil {
		return Retroaction{}, err
	}
	for _, q := range governedBy(k, p.Name, all) {
		would.add(&q, true)
	}
	return would, nil
}

type governedQueue struct {
	*Queue
	ttlMillis  int64
	precedence Precedence
}

// governedBy lists the queues that the named policy governs, with their time to live.
func governedBy(k policy.Kind, name string, all []governed) (list []governedQueue) {
	for i := range all {
		q, p := all[i].queue, all[i].Policies[k]
		if q == nil || p == nil || p.Name != name {
			continue
		}
		a := appliedOf(&all[i].Ruling)
		if set := q.asked.under(a.definition, q.declared.Args, q.name); set.ttlMillis >= 0 && !set.keeps && !q.vh.b.opts.TTLOff {
			list = append(list, governedQueue{q, set.ttlMillis, set.precedence})
		}
	}
	return list
}

// add applies a time to live to what stands in the queue, or only counts.
func (r *Retroaction) add(q *governedQueue, dry bool) {
	r.Queues++
	page := make([]MessageRef, 0, deadlinesPage)
	for from, more := queue.Seq(0), true; more; {
		var deadline int64
		page, deadline, from, more = q.laterThan(from, page[:0])
		for _, ref := range page {
			outcome := Rescheduled
			if !dry {
				outcome, _ = q.vh.b.Reschedule(ref, deadline)
			}
			if outcome == Gone {
				continue
			}
			r.Earlier++
			if outcome == Expired || dry && q.ttlMillis == 0 {
				r.Expired++
			}
		}
	}
}

// laterThan reads a page of the messages whose deadline is none, or later than one
// that comes when the time to live is up, counted from now.
func (q *governedQueue) laterThan(from queue.Seq, page []MessageRef) (_ []MessageRef, deadline int64, next queue.Seq, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	deadline = q.vh.b.clock.stampAt() + q.ttlMillis*milli
	seen := 0
	q.core.Each(from, func(seq queue.Seq, m queue.Message, _ queue.State) bool {
		if seen == deadlinesPage {
			next, more = seq, true
			return false
		}
		seen++
		if m.ExpiresAt == 0 || m.ExpiresAt > deadline && q.precedence != MessageFirst {
			page = append(page, q.ref(seq, m.ExpiresAt))
		}
		return true
	})
	return page, deadline, next, more
}
