package rabbitmq

import (
	"maps"

	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/observe"
)

// seen has the statistics of a queue's messages. Each message is seen by a keeper or by the observer, of this Curfew or another.
type seen struct {
	ended            cluster.TTLStats // by former keepers and observers of this Curfew
	keeper, observer cluster.TTLStats // by the present ones
	// known is what all Curfews have seen, as far as this one knows. It stays when another Curfew ends.
	known cluster.TTLStats
}

// seenTable has the statistics by queue.
type seenTable map[string]*seen

// of returns the entry of a queue, and adds it if necessary.
func (t seenTable) of(name string) *seen {
	if t[name] == nil {
		t[name] = &seen{}
	}
	return t[name]
}

// here is what this Curfew has seen.
func (s *seen) here() cluster.TTLStats { return s.ended.Plus(s.keeper).Plus(s.observer) }

// note takes in what a keeper or the observer has seen since it began. If that is less than last time, it is a new one.
func (s *seen) note(of *cluster.TTLStats, latest cluster.TTLStats) {
	if latest.Messages < of.Messages {
		s.ended = s.ended.Plus(*of)
	}
	*of = latest
}

// updateSeenLocked takes in what keepers, the observer and other Curfews have seen, and forgets queues that are gone.
func (p *Primary) updateSeenLocked(observed map[string]*observe.State) {
	for name, state := range observed {
		s := p.seen.of(name)
		s.note(&s.observer, state.Seen)
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

// known is what all Curfews have seen of a queue's messages.
func (t seenTable) known(name string) cluster.TTLStats {
	if s := t[name]; s != nil {
		return s.known
	}
	return cluster.TTLStats{}
}
