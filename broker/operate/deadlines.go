package operate

import (
	"cmp"
	"container/heap"
	"context"
	"slices"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// farMillis is beyond any deadline, and sums with it do not overflow.
const farMillis = 1 << 50

// DeadlineList says which deadlines to list.
type DeadlineList struct {
	VHost string // "" all
	Queue string // "" all of the virtual host
	Count int    // at most MaxSearchCount; the earliest
	// After and Before limit the list to deadlines later than one instant and up to another, Unix ms; 0: no limit.
	After, Before int64
	Overdue       bool // only deadlines that have come
}

// Deadline is the deadline of a queued message.
type Deadline struct {
	Queue   *broker.Queue
	Message Message
	Overdue bool
}

// QueueDeadlines is how many of the requested deadlines are in a queue.
type QueueDeadlines struct {
	Queue *broker.Queue
	Count int
	First int64 // Unix ms, the earliest
}

// NextDeadlines lists the next deadlines of queued messages, the earliest first, and how many there are in each queue that has any, the queue
// with the most first. It examines every message of the queues.
func (o *Operations) NextDeadlines(ctx context.Context, a Actor, r DeadlineList) (list []Deadline, in []QueueDeadlines, err error) {
	queues, err := o.queuesWithDeadlines(&a, &r)
	if err != nil {
		return nil, nil, err
	}
	after, before := o.instant(r.After), o.instant(r.Before)
	if r.Overdue {
		before = o.Broker.Now()
	}
	var next dues
	for _, from := range queues {
		if err := ctx.Err(); err != nil { // the client has gone
			return nil, nil, err
		}
		one := QueueDeadlines{Queue: from}
		first := deadline.Instant(0)
		from.EachDue(func(d broker.Due) {
			if (before == 0 || d.Ref.Deadline <= before) && (after == 0 || d.Ref.Deadline > after) {
				if one.Count++; first == 0 || d.Ref.Deadline < first {
					first = d.Ref.Deadline
				}
				next.keep(due{d, from}, min(r.Count, MaxSearchCount))
			}
		})
		if one.Count > 0 {
			one.First = o.Broker.UnixMillis(first)
			in = append(in, one)
		}
	}
	slices.SortFunc(in, func(a, b QueueDeadlines) int {
		return cmp.Or(b.Count-a.Count, cmp.Compare(a.Queue.Name(), b.Queue.Name()))
	})
	slices.SortFunc(next, func(a, b due) int { return cmp.Compare(a.Ref.Deadline, b.Ref.Deadline) })
	for i := range next {
		if x, ok := next[i].queue.BrowseOne(queue.Seq(next[i].Ref.Seq), 0); ok { // otherwise it has left
			list = append(list, Deadline{next[i].queue, o.message(next[i].queue, &x), o.Broker.Now() >= next[i].Ref.Deadline})
		}
	}
	return list, in, nil
}

// instant converts Unix ms to an instant of the broker's clock; 0 stays 0, which means none.
func (o *Operations) instant(millis int64) deadline.Instant {
	if millis == 0 {
		return 0
	}
	return o.Broker.Instant(min(max(millis, -farMillis), farMillis))
}

// queuesWithDeadlines returns the queue that is named, or all that the actor may see.
func (o *Operations) queuesWithDeadlines(a *Actor, r *DeadlineList) (list []*broker.Queue, err error) {
	if r.Queue != "" {
		q, err := o.queue(a, ListDeadlines, QueueName{r.VHost, r.Queue})
		return []*broker.Queue{q}, err
	}
	if err := o.permit(a, ListDeadlines, r.VHost); err != nil {
		return nil, err
	}
	for _, vh := range o.VHosts(*a) {
		if r.VHost != "" && r.VHost != vh.Name() {
			continue
		}
		list = append(list, slices.DeleteFunc(vh.Queues.List(), func(q *broker.Queue) bool {
			return o.permitQueue(a, ListDeadlines, vh, q.Name()) != nil
		})...)
	}
	return list, nil
}

// due is a deadline and its queue.
type due struct {
	broker.Due
	queue *broker.Queue
}

// dues holds the earliest deadlines, with the latest of them at its front (container/heap).
type dues []due

func (d dues) Len() int           { return len(d) }
func (d dues) Less(i, j int) bool { return d[i].Ref.Deadline > d[j].Ref.Deadline }
func (d dues) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dues) Push(x any)        { *d = append(*d, x.(due)) }
func (d *dues) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

// keep adds one if it is among the earliest; there are at most most of them.
func (d *dues) keep(one due, most int) {
	if len(*d) < most {
		heap.Push(d, one)
	} else if most > 0 && one.Ref.Deadline < (*d)[0].Ref.Deadline {
		(*d)[0] = one
		heap.Fix(d, 0)
	}
}

// DeadlineChange is a change of a message's deadline: one of By, At, Cancel and Fire.
type DeadlineChange struct {
	By     int64 // ms later; negative: earlier
	At     int64 // Unix ms
	Cancel bool  // the message has none from now on
	Fire   bool  // it comes now
	Drop   bool  // with Fire: the message is not dead-lettered
	// Was is the deadline that somebody saw, Unix ms, 0 for none: if the message has a different one, nothing is changed. nil: any.
	Was *int64
	// QueueID is the incarnation of the queue that somebody saw: in a different one, the number belongs to a different message. 0: any.
	QueueID uint64
}

// DeadlineChanged is the result of a change.
type DeadlineChanged struct {
	// Outcome is "rescheduled", "expired", or "held": a consumer holds the message, which expires if it comes back.
	Outcome  string
	Deadline int64 // Unix ms; 0 none, or the message has left
}

var outcomes = map[deadline.Outcome]string{deadline.Rescheduled: "rescheduled", deadline.Expired: "expired", deadline.Held: "held"}

// ChangeDeadline changes the deadline of one message by its number. Errors: ErrMessageGone, ErrChanged, *OutOfRange or *Invalid among others.
func (o *Operations) ChangeDeadline(ctx context.Context, a Actor, at QueueName, seq queue.Seq, c DeadlineChange) (done DeadlineChanged, err error) {
	q, err := o.queue(&a, ChangeDeadline, at)
	was := int64(0)
	if err == nil && c.QueueID != 0 && c.QueueID != q.ID() {
		err = ErrMessageGone
	}
	if err == nil {
		done, was, err = o.changeDeadline(q, seq, &c)
	}
	if err == nil {
		err = o.commit(ctx)
	}
	o.Record(a, ChangeDeadline, at, err, zap.Uint64("seq", uint64(seq)), zap.String("outcome", done.Outcome), zap.Int64("from", was), zap.Int64("to", done.Deadline),
		zap.Bool("fired", c.Fire), zap.Bool("dropped", c.Fire && c.Drop))
	return done, err
}

func (o *Operations) changeDeadline(q *broker.Queue, seq queue.Seq, c *DeadlineChange) (done DeadlineChanged, was int64, err error) {
	x, ok := q.BrowseOne(seq, 0)
	if !ok {
		return done, 0, ErrMessageGone
	}
	if was = o.Broker.UnixMillis(x.Deadline); c.Was != nil && *c.Was != was {
		return done, was, ErrChanged
	}
	if !o.Broker.Expires() {
		return done, was, &Invalid{"no message expires here (CURFEW_TTL=off), so there is no deadline to change"}
	}
	var outcome deadline.Outcome
	ref := q.Ref(&x)
	if c.Fire {
		outcome, ref.Deadline = o.Broker.FireNow(ref, c.Drop), 0
	} else {
		to, err := o.newDeadline(c, x.Deadline)
		if err != nil {
			return done, was, err
		}
		outcome, ref = o.Broker.Reschedule(ref, to)
	}
	if outcomes[outcome] == "" {
		return done, was, ErrChanged
	}
	return DeadlineChanged{outcomes[outcome], o.Broker.UnixMillis(ref.Deadline)}, was, nil
}

// newDeadline returns the changed deadline. Both deadlines are on the broker's clock, 0 for none.
func (o *Operations) newDeadline(c *DeadlineChange, was deadline.Instant) (to deadline.Instant, err error) {
	switch {
	case c.Cancel:
		return 0, nil
	case c.At < 0 || max(c.At, c.By) > farMillis || c.By < -farMillis:
		return 0, &OutOfRange{"deadline", cmp.Or(c.At, c.By)}
	case c.At != 0:
		to = o.Broker.Instant(c.At)
	case c.By == 0:
		return 0, &Invalid{"say by_millis, at, cancel or fire"}
	case was == 0:
		return 0, &Invalid{"the message has no deadline: give it one with at"}
	default:
		to = was.AddMillis(deadline.Millis(c.By))
	}
	if to < 0 || to > o.Broker.Now().AddMillis(policy.MaxTTLMillis) {
		return 0, &OutOfRange{"deadline", o.Broker.UnixMillis(to)}
	}
	return to, nil
}
