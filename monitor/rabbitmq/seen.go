package rabbitmq

import (
	"maps"

	"curfew/monitor/rabbitmq/cluster"
)

// seen is what was seen of a queue's messages. Each is seen by a keeper or by the observer, of this Curfew or another's.
type seen struct {
	ended            cluster.Seen // by keepers and observers of this Curfew that are no more
	keeper, observer cluster.Seen // by the present ones
	// known is all that any Curfew has seen, as far as this one was told. It stays when another Curfew ends.
	known cluster.Seen
}

// seenTable is what was seen, by queue.
type seenTable map[string]*seen

// of is that of a queue, from now on if need be.
func (t seenTable) of(name string) *seen {
	if t[name] == nil {
		t[name] = &seen{}
	}
	return t[name]
}

// here is what this Curfew has seen.
func (s *seen) here() cluster.Seen { return sum(s.ended, sum(s.keeper, s.observer)) }

// note takes in what a keeper or the observer has seen since it began; less than last time: it is another one.
func (s *seen) note(of *cluster.Seen, latest cluster.Seen) {
	if latest.Messages < of.Messages {
		s.ended = sum(s.ended, *of)
	}
	*of = latest
}

// sum is what was seen of two sets of messages.
func sum(a, b cluster.Seen) cluster.Seen {
	if a.Expiring == 0 || b.Expiring > 0 && b.Least < a.Least {
		a.Least = b.Least
	}
	a.Most = max(a.Most, b.Most)
	a.Messages, a.Expiring, a.Shorter = a.Messages+b.Messages, a.Expiring+b.Expiring, a.Shorter+b.Shorter
	return a
}

// lookAtMessagesLocked takes in what keepers, the observer and other Curfews have seen, and forgets queues that are gone.
func (p *Primary) lookAtMessagesLocked() {
	if p.observing.observer != nil {
		for name, latest := range p.observing.observer.Seen() {
			s := p.seen.of(name)
			s.note(&s.observer, latest)
		}
	}
	for name, q := range p.queues {
		if q.keeper != nil {
			s := p.seen.of(name)
			s.note(&s.keeper, cluster.Seen(q.keeper.Status().Seen))
		}
	}
	elsewhere := p.group.seenElsewhere()
	for name := range elsewhere {
		p.seen.of(name)
	}
	maps.DeleteFunc(p.seen, func(name string, _ *seen) bool { return p.inventory.Queue(name) == nil })
	for name, s := range p.seen {
		if all := sum(s.here(), elsewhere[name]); all.Messages > s.known.Messages {
			s.known = all
		}
	}
}

// known is what was seen of a queue's messages by any Curfew.
func (t seenTable) known(name string) cluster.Seen {
	if s := t[name]; s != nil {
		return s.known
	}
	return cluster.Seen{}
}
