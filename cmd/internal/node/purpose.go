package node

import (
	"cmp"
	"slices"
	"time"

	"curfew/broker"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/monitor/incident"
)

// purposes are those of the queues that conditions are about, for which it also fills in State.Consumers and State.Keeping. A queue of which none shall expire counts as one for work.
func (l *looker) purposes(b *broker.Broker, s *incident.State) map[incident.QueueName]deadline.Purpose {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
	of := make(map[incident.QueueName]deadline.Purpose)
	s.Consumers, s.Keeping = make(map[incident.QueueName]incident.Consumers), make(map[incident.QueueName]func() string)
	add := func(name incident.QueueName) {
		if _, known := of[name]; known {
			return
		}
		vh, q, purpose := l.namedLocked(b, name)
		if of[name] = purpose; q == nil {
			return
		}
		if purpose.Loses() && !q.Settings().DeadLetters {
			s.Keeping[name] = func() string { return keeping(vh, q) }
		}
		was, looked := l.consumers[name]
		is := consumersOf(b, q, was, looked)
		if c := l.closed[is.Last]; is.Left.Sub(c.at).Abs() < closingTakes {
			is.ClosedBy = c.by
		}
		s.Consumers[name] = is
	}
	for i := range s.Tallies {
		add(incident.QueueName{VHost: s.Tallies[i].VHost, Name: s.Tallies[i].Queue})
	}
	for i := range s.Forecasts {
		if f := &s.Forecasts[i]; f.NearlyDue {
			add(incident.QueueName{VHost: f.VHost, Name: f.Queue})
		}
	}
	for i := range s.Held {
		add(s.Held[i].QueueName)
	}
	for i := range s.Objectives {
		add(s.Objectives[i].QueueName)
	}
	l.consumers, l.last = s.Consumers, of
	for vh, x := range l.leads {
		if x.look+leadsKept < l.looks { // it would keep deleted queues in memory
			delete(l.leads, vh)
		}
	}
	return of
}

// closing is that a user has closed a connection. Its consumers have left by closingTakes later at the latest.
type closing struct {
	by string
	at time.Time
}

const closingTakes = 10 * time.Second

// maxClosed bounds what is remembered of closings; above it all are forgotten.
const maxClosed = 1000

// noteClosed remembers that a user has closed the connection of a client. Safe for concurrent use.
func (l *looker) noteClosed(client, by string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed == nil || len(l.closed) >= maxClosed {
		l.closed = map[string]closing{}
	}
	l.closed[client] = closing{by, time.Now()}
}

// consumersOf are the consumers of a queue, given those at the last look, if there was one.
func consumersOf(b *broker.Broker, q *broker.Queue, was incident.Consumers, looked bool) incident.Consumers {
	is, d := was, q.Messages.Departed()
	_, _, is.Count = q.Messages.Counts()
	is.ClosedBy = ""
	switch is.Last = d.Client; {
	case looked && is.Count > was.Count:
		is.Came = time.Now()
	case d.Client != "":
		is.Left = time.Now().Add(-b.Now().Sub(d.At))
	case is.Count < was.Count:
		is.Left = time.Now()
	}
	return is
}

// leadsKept is for how many looks it is remembered where dead letters lead, after somebody needed it: the page of queues asks every two seconds.
const leadsKept = 10

// purpose is what a queue is for. Safe for concurrent use.
func (l *looker) purpose(b *broker.Broker, q *broker.Queue) deadline.Purpose {
	vh, ok := b.VHost(q.VHost().Name())
	if !ok {
		return deadline.Work
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.purposeLocked(vh, q)
}

// meant reports whether an expiry in a queue is no loss. Safe for concurrent use.
func (o *ownBroker) meant(vhost, queue string) bool {
	l := &o.n.looker
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _, purpose := l.namedLocked(o.broker, incident.QueueName{VHost: vhost, Name: queue})
	return !purpose.Loses()
}

// namedLocked finds a queue and what it is for. One that is gone, by itself or with its virtual host, is nil, and is for what it was for at the
// last look, or else for a reply: no loss to whoever deleted it.
func (l *looker) namedLocked(b *broker.Broker, name incident.QueueName) (vh *broker.VHost, q *broker.Queue, purpose deadline.Purpose) {
	vh, ok := b.VHost(name.VHost)
	if ok {
		q, _ = vh.Queues.Get(name.Name)
	}
	switch {
	case !ok && name.VHost == otherQueues: // several, of any purpose
		return nil, nil, deadline.Work
	case q == nil:
		return vh, nil, cmp.Or(l.last[name], deadline.Reply)
	case q.Settings().Objective.NoneExpires():
		return vh, q, deadline.Work
	}
	return vh, q, l.purposeLocked(vh, q)
}

// purposeLocked is what a queue is for, by its arguments, its policies and what leads where.
func (l *looker) purposeLocked(vh *broker.VHost, q *broker.Queue) deadline.Purpose {
	of, set := incident.QueueName{VHost: vh.Name(), Name: q.Name}, q.Settings()
	if set.Purpose != 0 {
		return set.Purpose
	}
	if of.Name == policy.UndeliverableQueue {
		return deadline.DeadLetters
	}
	where := l.leadsOf(vh)
	declared := q.Declared()
	f := deadline.QueueFacts{
		Name: of.Name, Exclusive: declared.Exclusive, AutoDelete: declared.AutoDelete, TTL: set.TTLMillis >= 0, Bounded: set.Limited(),
		Consumed: q.Consumed(), DeadLetters: set.DeadLetters, Collects: where.collects[q],
	}
	if exchange, key, ok := q.DeadLettersTo(); ok && exchange == "" && key == "" {
		// Each goes back to the queue that its routing key names. Here that makes sense only for retries.
		f.TargetConsumed, f.Onward = true, true
	} else if to := where.of[q]; to != nil && !f.Consumed {
		to = to.at(l.looks)
		f.TargetConsumed, f.Onward, f.Shared = to.consumed, to.onward, to.shared
	}
	return deadline.PurposeOf(f)
}

// leads says where the dead letters of the queues of a virtual host lead.
type leads struct {
	version  uint64    // of the virtual host
	next     time.Time // when that may be found out again
	look     uint64    // the last one that needed it
	of       map[*broker.Queue]*targets
	collects map[*broker.Queue]bool // those that they lead to
}

// leadsShare: finding out where dead letters lead takes at most one part in leadsShare of the time.
const leadsShare = 50

// leadsOf finds out where dead letters lead, if anything has changed.
func (l *looker) leadsOf(vh *broker.VHost) *leads {
	if l.leads == nil {
		l.leads = map[*broker.VHost]*leads{}
	}
	x, version, began := l.leads[vh], vh.Version(), time.Now()
	if x == nil || x.version != version && !began.Before(x.next) {
		x = findLeads(vh, version)
		x.next = time.Now().Add(leadsShare * time.Since(began))
		l.leads[vh] = x
	}
	x.look = l.looks
	return x
}

func findLeads(vh *broker.VHost, version uint64) *leads {
	x := &leads{version: version, of: map[*broker.Queue]*targets{}, collects: map[*broker.Queue]bool{}}
	shared := map[**broker.Queue]*targets{}
	for q, list := range vh.DeadLetterTargets() {
		if len(list) == 0 {
			continue
		}
		to := shared[&list[0]]
		if to == nil {
			to = &targets{list: list}
			shared[&list[0]] = to
		}
		to.from = append(to.from, q)
		x.of[q] = to
	}
	for _, to := range shared {
		for _, target := range to.list {
			if len(to.from) > 1 || to.from[0] != target {
				x.collects[target] = true
			}
		}
	}
	return x
}

// targets are the queues that the dead letters of some queues lead to.
type targets struct {
	list, from []*broker.Queue
	look       uint64 // in which the rest was found out
	consumed   bool   // a client has ever consumed one of list
	onward     bool   // such a one has a dead-letter exchange itself
	shared     bool   // a client has ever consumed one of from
}

// at finds out in a look what clients have consumed. Only queues that nobody has consumed ask, so that none of them is its own target.
func (t *targets) at(look uint64) *targets {
	if t.look != look {
		t.look, t.consumed, t.onward, t.shared = look, false, false, slices.ContainsFunc(t.from, (*broker.Queue).Consumed)
		for i := 0; i < len(t.list) && !t.onward; i++ {
			if t.list[i].Consumed() {
				t.consumed, t.onward = true, t.list[i].Settings().DeadLetters
			}
		}
	}
	return t
}
