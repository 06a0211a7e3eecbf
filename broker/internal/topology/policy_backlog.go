package topology

import (
	"cmp"
	"fmt"
	"slices"

	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// BacklogEffect counts what happens to messages that are already queued when a
// policy's time to live is applied to them too.
type BacklogEffect struct {
	Queues  int `json:"queues"`  // that the policy governs and that have a time to live
	Earlier int `json:"earlier"` // messages whose deadline becomes earlier, including those that had none
	Expired int `json:"expired"` // messages that expire at once: the time to live is 0

	// Names are those of the queues, in order; at most 100.
	Names []string `json:"names" hide:"table"`
	// Aims are the queues that get another purpose or objective, each with both; at most 100.
	Aims []string `json:"aims,omitempty"`
}

const maxNames = 100

// SetForBacklog is Set, and then applies the time to live to messages that
// are already queued: it counts from now, since their arrival is not recorded, and no
// deadline becomes later. Where a message's own time to live takes precedence over its
// queue's (MessageFirst), only messages without a deadline are given one. After a crash
// in between, some messages are unchanged; the call can be repeated. It returns when
// its changes are as durable as the store's mode promises.
func (t *Policies) SetForBacklog(k policy.Kind, p policy.Policy) (created bool, done BacklogEffect, err error) {
	if created, err = t.Set(k, p); err != nil {
		return false, BacklogEffect{}, err
	}
	var governed []governedQueue
	t.eachPortion(collect(k, p.Name, &governed))
	done.apply(governed, false)
	committed := make(chan error, 1)
	t.vh.registry.env.Store.Commit(func(err error) { committed <- err })
	return created, done, <-committed
}

// Preview returns what SetForBacklog would do now, and changes nothing.
// Error: *policy.Invalid.
func (t *Policies) Preview(k policy.Kind, p policy.Policy) (would BacklogEffect, err error) {
	if p, err = t.checkPolicy(k, p); err != nil {
		return BacklogEffect{}, err
	}
	var queues []governedQueue
	was := t.sets()
	sets := was
	sets[k] = sets[k].With(p)
	t.review(was, sets, func(list []governed) {
		would.aim(list)
		collect(k, p.Name, &queues)(list)
	})
	slices.Sort(would.Aims)
	would.apply(queues, true)
	return would, nil
}

// aim adds the queues that get another purpose or objective.
func (r *BacklogEffect) aim(list []governed) {
	for i := range list {
		q := list[i].queue
		if q == nil || len(r.Aims) == maxNames {
			continue
		}
		was, set := q.Settings(), q.under(list[i].definition())
		if set.Purpose != was.Purpose || set.Objective != was.Objective {
			r.Aims = append(r.Aims, fmt.Sprintf("%s: %s, %s", q.Name, cmp.Or(set.Purpose.String(), "purpose inferred"), cmp.Or(set.Objective.String(), "no objective")))
		}
	}
}

type governedQueue struct {
	queue      *Queue
	ttlMillis  int64
	precedence policy.Precedence
}

// collect adds the queues that the named policy governs, with their time to live.
func collect(k policy.Kind, name string, to *[]governedQueue) func([]governed) {
	return func(list []governed) {
		for i := range list {
			g := &list[i]
			q, p := g.queue, g.ruling[k]
			if q == nil || p == nil || p.Name != name {
				continue
			}
			set := q.under(g.definition())
			if set.TTLMillis >= 0 && !set.Keeps && !q.vh.registry.env.TTLOff {
				*to = append(*to, governedQueue{q, set.TTLMillis, set.Precedence})
			}
		}
	}
}

// apply applies a time to live to the messages in the queues; a dry run only counts them.
func (r *BacklogEffect) apply(queues []governedQueue, dry bool) {
	slices.SortFunc(queues, func(a, b governedQueue) int { return cmp.Compare(a.queue.Name, b.queue.Name) })
	for i := range queues {
		if len(r.Names) < maxNames {
			r.Names = append(r.Names, queues[i].queue.Name)
		}
		r.add(&queues[i], dry)
	}
}

// add is apply for one queue.
func (r *BacklogEffect) add(q *governedQueue, dry bool) {
	r.Queues++
	page := make([]deadline.Ref, 0, delivery.PageSize)
	for from, more := queue.Seq(0), true; more; {
		var to deadline.Instant
		page, to, from, more = q.queue.Messages.LaterThan(from, page[:0], q.ttlMillis, q.precedence)
		if dry {
			r.Earlier += len(page)
			if q.ttlMillis == 0 {
				r.Expired += len(page)
			}
			continue
		}
		q.queue.vh.registry.env.AwaitFeed() // each message has two events
		s := q.queue.vh.registry.env.Begin()
		q.queue.Messages.Reschedule(s, page, to, false, func(outcome deadline.Outcome, _ deadline.Ref) {
			if outcome != deadline.Gone {
				r.Earlier++
			}
			if outcome == deadline.Expired {
				r.Expired++
			}
		})
		s.Done()
	}
}
