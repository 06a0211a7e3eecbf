package node

import (
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
		of[name] = deadline.Work
		if vh, ok := b.VHost(name.VHost); ok {
			if q, err := vh.Queues.Get(name.Name); err == nil {
				if !q.Settings().Objective.NoneExpires() {
					of[name] = l.purposeLocked(vh, q)
				}
				if of[name].Loses() && !q.Settings().DeadLetters {
					s.Keeping[name] = func() string { return keeping(vh, q) }
				}
				was, looked := l.consumers[name]
				s.Consumers[name] = consumersOf(b, q, was, looked)
			}
		}
	}
	for i := range s.Tallies {
		add(incident.QueueName{VHost: s.Tallies[i].VHost, Name: s.Tallies[i].Queue})
	}
	for i := range s.AtRisk {
		add(s.AtRisk[i].QueueName)
	}
	for i := range s.Held {
		add(s.Held[i].QueueName)
	}
	l.consumers = s.Consumers
	for name, x := range l.leads {
		if x.look+leadsKept < l.looks { // it would keep deleted queues in memory
			delete(l.leads, name)
		}
	}
	return of
}

// consumersOf are the consumers of a queue, given those at the last look, if there was one.
func consumersOf(b *broker.Broker, q *broker.Queue, was incident.Consumers, looked bool) incident.Consumers {
	is, d := was, q.Departed()
	_, _, is.Count = q.Counts()
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

// clientsReturn is how long after the start a queue of an earlier run may be without its consumers: until then it counts as consumed.
const clientsReturn = 30 * time.Second

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
func (l *looker) meant(b *broker.Broker, vhost, queue string) bool {
	vh, ok := b.VHost(vhost)
	if !ok {
		return false
	}
	q, err := vh.Queues.Get(queue)
	return err == nil && !q.Settings().Objective.NoneExpires() && !l.purpose(b, q).Loses()
}

// purposeLocked is what a queue is for, by its arguments, its policies and what leads where.
func (l *looker) purposeLocked(vh *broker.VHost, q *broker.Queue) deadline.Purpose {
	of, set := incident.QueueName{VHost: vh.Name(), Name: q.Name()}, q.Settings()
	if set.Purpose != 0 {
		return set.Purpose
	}
	if of.Name == policy.UndeliverableQueue {
		return deadline.DeadLetters
	}
	where := l.leadsOf(vh)
	declared := q.Declared()
	_, _, consumers := q.Counts()
	_, _, stats := q.Load()
	f := deadline.QueueFacts{
		Name: of.Name, Exclusive: declared.Exclusive, AutoDelete: declared.AutoDelete, TTL: set.TTLMillis >= 0, Bounded: set.Limited(),
		DeadLetters: set.DeadLetters, Consumers: consumers, Delivered: stats.AllDelivered(), Collects: where.collects[q],
	}
	if exchange, key, ok := q.DeadLettersTo(); ok && exchange == "" && key == "" {
		// Each goes back to the queue that its routing key names. Here that makes sense only for retries.
		f.Target, f.Consumed, f.Onward = true, true, true
	}
	returning := l.earlier[of] && time.Since(l.opened) < clientsReturn
	if to := where.of[q]; to != nil {
		all, consumed, onward := to.besides(q, l.looks)
		f.Target = f.Target || all > 0
		f.Consumed = f.Consumed || consumed > 0 || returning && all > 0
		f.Onward = f.Onward || onward > 0
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
		l.leads = map[string]*leads{}
	}
	x, version, began := l.leads[vh.Name()], vh.Version(), time.Now()
	if x == nil || x.version != version && !began.Before(x.next) {
		x = findLeads(vh, version)
		x.next = time.Now().Add(leadsShare * time.Since(began))
		l.leads[vh.Name()] = x
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
			to = &targets{list: list, own: map[*broker.Queue]bool{}}
			shared[&list[0]] = to
		}
		to.from = append(to.from, q)
		x.of[q] = to
	}
	for _, to := range shared {
		for _, target := range to.list {
			if x.of[target] == to {
				to.own[target] = true
			}
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
	own        map[*broker.Queue]bool // of list that are in from, too
	look       uint64                 // in which they were counted
	consumed   int                    // of list: somebody consumes, or has done so since the start; counted up to two, as onward
	onward     int                    // of list: they have a dead-letter exchange themselves
}

// besides counts the targets other than q in a look: a queue that leads to itself alone leads nowhere.
func (t *targets) besides(q *broker.Queue, look uint64) (all, consumed, onward int) {
	if t.look != look {
		t.look, t.consumed, t.onward = look, 0, 0
		for i := 0; i < len(t.list) && min(t.consumed, t.onward) < 2; i++ {
			c, o := factsOf(t.list[i])
			t.consumed, t.onward = t.consumed+c, t.onward+o
		}
	}
	all, consumed, onward = len(t.list), t.consumed, t.onward
	if t.own[q] {
		c, o := factsOf(q)
		all, consumed, onward = all-1, consumed-c, onward-o
	}
	return all, consumed, onward
}

// factsOf are 1 for a queue that somebody consumes, or has done so since the start, and for one that has a dead-letter exchange.
func factsOf(q *broker.Queue) (consumed, onward int) {
	if _, _, consumers := q.Counts(); consumers > 0 {
		consumed = 1
	} else if _, _, stats := q.Load(); stats.AllDelivered() > 0 {
		consumed = 1
	}
	if q.Settings().DeadLetters {
		onward = 1
	}
	return consumed, onward
}
