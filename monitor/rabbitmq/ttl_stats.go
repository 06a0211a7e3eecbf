package rabbitmq

import (
	"maps"

	"curfew/monitor/rabbitmq/queuefacts"
)

// seen is what was seen of a queue's messages. Each is seen by a keeper or by the observer, of this Curfew or another's.
type seen struct {
	ended            queuefacts.TTLStats // by keepers and observers of this Curfew that are no more
	keeper, observer queuefacts.TTLStats // by the present ones
	// known is all that any Curfew has seen, as far as this one was told. It stays when another Curfew ends.
	known queuefacts.TTLStats
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
func (s *seen) here() queuefacts.TTLStats { return s.ended.Plus(s.keeper).Plus(s.observer) }

// note takes in what a keeper or the observer has seen since it began; less than last time: it is another one.
func (s *seen) note(of *queuefacts.TTLStats, latest queuefacts.TTLStats) {
	if latest.Messages < of.Messages {
		s.ended = s.ended.Plus(*of)
	}
	*of = latest
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
			s.note(&s.keeper, q.keeper.Status().Seen)
		}
	}
	elsewhere := p.group.seenElsewhere()
	for name := range elsewhere {
		p.seen.of(name)
	}
	maps.DeleteFunc(p.seen, func(name string, _ *seen) bool { return p.inventory.Queue(name) == nil })
	for name, s := range p.seen {
		if all := s.here().Plus(elsewhere[name]); all.Messages > s.known.Messages {
			s.known = all
		}
	}
}

// known is what was seen of a queue's messages by any Curfew.
func (t seenTable) known(name string) queuefacts.TTLStats {
	if s := t[name]; s != nil {
		return s.known
	}
	return queuefacts.TTLStats{}
}
