package keeper

import (
	"slices"

	"curfew/broker/deadline"
)

// holding is the part of a stretch that one of its consumers has taken and that is still held. A quorum queue counts the consumer while it
// holds any message.
type holding struct {
	count int
	asked int  // the consumer's prefetch
	stays bool // the consumer was cancelled and is back, to take nothing
}

// stays are the consumers that were cancelled and are back under their tags, without credit: their messages count as held by live
// consumers when their node goes down. The zero value puts none back.
type stays struct {
	putsBack bool      // Facts.putsBack
	putBacks []putBack // by time
}

// putBack is a cancelled consumer that is to be put back.
type putBack struct {
	at          deadline.Instant
	stretch     uint32
	consumption int
}

// cancelConsumer ends taking; ended answers. A full consumer is put back at once if it is to be. Another one is put back later, since messages
// may be on their way to it and RabbitMQ would deliver again everything that it holds.
func (l *line) cancelConsumer() {
	s := l.consumer
	h := &s.holds[len(s.holds)-1]
	do := cancel
	if l.putsBack && h.count == h.asked {
		h.stays, do = true, replace
	}
	s.phase = cancelling
	l.do(command{do: do, stretch: s.id, consumption: len(s.holds) - 1})
}

// cancelled notes that the consumer of the stretch is gone.
func (l *line) cancelled(now deadline.Instant, s *stretch) {
	l.consumer = nil
	i := len(s.holds) - 1
	switch h := &s.holds[i]; {
	case h.count == 0 && l.quorum:
		l.gone++
	case h.count > 0 && l.putsBack && !h.stays:
		l.putBacks = append(l.putBacks, putBack{now.Add(stayAfter), s.id, i})
	}
}

// putBackDue puts back the consumers that are due.
func (l *line) putBackDue(now deadline.Instant) {
	n := 0
	for ; n < len(l.putBacks) && l.putBacks[n].at <= now; n++ {
		p := l.putBacks[n]
		if s := l.byID[p.stretch]; s != nil && s.phase != returning && s.holds[p.consumption].count > 0 {
			s.holds[p.consumption].stays = true
			l.out = append(l.out, command{do: stay, stretch: s.id, consumption: p.consumption})
		}
	}
	l.putBacks = slices.Delete(l.putBacks, 0, n)
}

// leave cancels a consumer if it was put back.
func (l *line) leave(s *stretch, consumption int) {
	if h := &s.holds[consumption]; h.stays {
		h.stays = false
		l.out = append(l.out, command{do: leave, stretch: s.id, consumption: consumption})
	}
}
