package keeper

import (
	"slices"

	"curfew/broker/deadline"
)

// spareCredit is by how many messages a consumer may exceed the size of its stretch until the next consumer takes over, or the others' credit
// is recalled.
const spareCredit = 1000

// holding is the part of a stretch that one of its consumers has taken and that is still held. A quorum queue counts the consumer while it
// holds any message.
type holding struct {
	count  int
	asked  int  // the consumer's prefetch
	stays  bool // the consumer was cancelled and is back, to take nothing
	credit bool // if it is back, it may have credit for one message, since one was given back
}

// stays are the consumers that were cancelled and are back under their tags, to take nothing: their messages count as held by live
// consumers when their node goes down. The zero value puts none back.
//
// Where a consumer can ask for no credit (3.x), nothing else has to be done. Where it cannot (4.0 to 4.2), each of them asks for one message,
// which it has already, at the lowest priority. It has credit for another one as soon as it gives one back. That does no harm while a
// consumer that takes more has credit: that consumer gets every message. So it has credit to spare, and the next consumer, of a higher
// priority, takes over before it is cancelled. If no other is to follow, the cancelled consumers lose their credit first: they are cancelled
// and put back once more (recall). While no consumer that takes more has credit to spare, they are cancelled before they give something back,
// and put back after that.
type stays struct {
	strands     bool      // Facts.strands
	needsCredit bool      // Facts.needsCredit
	putBacks    []putBack // by time; none if needsCredit
	recalls     int       // answers to recall that are on their way
	ending      bool      // the consumer is cancelled as soon as they have arrived
	astray      []uint32  // stretches that hold a stray
}

// putBack is a cancelled consumer that is to be put back.
type putBack struct {
	at          deadline.Instant
	stretch     uint32
	consumption int
}

// spare is the credit that a consumer asks for to cover the others.
func (st *stays) spare() int {
	if st.needsCredit {
		return spareCredit
	}
	return 0
}

// covered reports whether a consumer that takes more gets every new message, so that the credit of the others does no harm.
func (l *line) covered() bool {
	covers := func(s *stretch) bool { return s != nil && s.phase == live && s.covers }
	return covers(l.consumer) || covers(l.former)
}

// handOver opens a new stretch at the end of the queue, whose consumer takes over from the present one.
func (l *line) handOver(now deadline.Instant, prefetch int) {
	l.former = l.consumer
	l.openTail(now, prefetch, l.spare())
}

// handedOver cancels the former consumer once the new one is live: nothing is on its way to the former one now.
func (l *line) handedOver() {
	if s := l.former; s != nil {
		s.phase = cancelling
		l.do(command{do: cancel, stretch: s.id})
	}
}

// cancelConsumer ends taking; ended answers.
func (l *line) cancelConsumer() {
	l.consumer.phase = cancelling
	if l.ending = l.recall(); !l.ending {
		l.cancelNow()
	}
}

// cancelNow cancels the consumer. Where a cancelled consumer strands its messages if its node goes down, it is put back: at once if it is
// full, else later, since messages may be on their way to it and 3.x would deliver again everything that it holds.
func (l *line) cancelNow() {
	s := l.consumer
	h := &s.holds[len(s.holds)-1]
	do := cancel
	if l.strands && h.count == h.asked {
		h.stays, do = true, replace
	}
	l.do(command{do: do, stretch: s.id, consumption: len(s.holds) - 1})
}

// cancelled notes that the consumer of the stretch is gone.
func (l *line) cancelled(now deadline.Instant, s *stretch) {
	i := len(s.holds) - 1
	if l.former == s {
		l.former = nil
	} else {
		l.consumer, l.former, l.ending = l.former, nil, false
	}
	switch h := &s.holds[i]; {
	case h.count == 0:
		if l.quorum {
			l.gone++
		}
	case l.needsCredit:
		l.putBack(s)
	case l.strands && !h.stays:
		l.putBacks = append(l.putBacks, putBack{now.Add(stayAfter), s.id, i})
	}
}

// putBackDue puts back the consumers that are due.
func (l *line) putBackDue(now deadline.Instant) {
	n := 0
	for ; n < len(l.putBacks) && l.putBacks[n].at <= now; n++ {
		p := l.putBacks[n]
		if s := l.byID[p.stretch]; s != nil && s.phase != returning && s.holds[p.consumption].count > 0 {
			l.stay(s, p.consumption)
		}
	}
	l.putBacks = slices.Delete(l.putBacks, 0, n)
}

// putBack puts back the cancelled consumers of the stretch, if they need credit. It waits while another consumer is being opened on the same
// channel, since the channel's prefetch is that consumer's.
func (l *line) putBack(s *stretch) {
	if !l.needsCredit || s.phase == opening || s.phase == returning || s.recalls > 0 {
		return
	}
	for i := range s.holds {
		if h := &s.holds[i]; h.count > 0 && !h.stays && !l.isTaking(s, i) {
			l.stay(s, i)
		}
	}
}

func (l *line) stay(s *stretch, consumption int) {
	s.holds[consumption].stays = true
	l.out = append(l.out, command{do: stay, stretch: s.id, consumption: consumption})
}

// leave cancels a consumer if it was put back.
func (l *line) leave(s *stretch, consumption int) {
	if h := &s.holds[consumption]; h.stays {
		h.stays = false
		l.out = append(l.out, command{do: leave, stretch: s.id, consumption: consumption})
	}
}

// returns is called before a consumer of the stretch gives back a single message; putBack is called after the last one.
func (l *line) returns(s *stretch, consumption int) {
	h := &s.holds[consumption]
	switch {
	case l.isTaking(s, consumption) && !h.stays:
	case !l.needsCredit:
		if h.count == 0 {
			l.leave(s, consumption)
		}
	case !l.covered():
		// While the queue is slow, RabbitMQ's channel may delay what is given back, and send it after the consumer is back.
		l.leave(s, consumption)
		h.credit = true
	default:
		if h.credit = true; h.count == 0 {
			l.recallOne(s, consumption)
		}
	}
}

// recall takes the credit from all that may have some, and reports whether there are any; recalled answers for each.
func (l *line) recall() bool {
	if !l.needsCredit {
		return false
	}
	for _, s := range l.stretches {
		for i := range s.holds {
			l.recallOne(s, i)
		}
	}
	return l.recalls > 0
}

func (l *line) recallOne(s *stretch, consumption int) {
	if h := &s.holds[consumption]; h.stays && h.credit {
		h.stays, h.credit = false, false
		s.recalls++
		l.recalls++
		l.out = append(l.out, command{do: recall, stretch: s.id, consumption: consumption})
	}
}

// recalled takes in that a consumer of the stretch that was back is cancelled, and that all its deliveries have come.
func (l *line) recalled(id uint32) {
	s := l.byID[id]
	if s == nil || s.recalls == 0 {
		return
	}
	l.answered(s, 1)
	l.putBack(s)
	l.dropIfEmpty(s)
}

// answered notes n answers to recall.
func (l *line) answered(s *stretch, n int) {
	s.recalls -= n
	l.recalls -= n
	if l.recalls == 0 && l.ending {
		l.ending = false
		l.cancelNow()
	}
}

// takesStray reports whether a delivery to a consumer that is back to take nothing is a message more: the consumer had credit for it, or the
// stretch does not hold it. A message that was on its way to the consumer when that was cancelled may come late. RabbitMQ may also deliver
// again everything that the consumer holds.
func (st *stays) takesStray(s *stretch, consumption int, m message, held *heldMessages) bool {
	return st.needsCredit && consumption < len(s.holds) && (s.holds[consumption].credit || s.recalls > 0 || !held.has(s, m.fingerprint))
}

// strayed notes a message that such a consumer received. It belongs behind everything that is held, so it is given back for the consumer that
// takes more: it is a stranger, unless it is in that consumer's stretch. The consumer that received it may still have credit, for messages
// that it has given back since.
func (l *line) strayed(s *stretch) flags {
	if s == l.consumer || s == l.former {
		return 0
	}
	if len(l.astray) == 0 || l.astray[len(l.astray)-1] != s.id {
		l.astray = append(l.astray, s.id)
	}
	return stranger
}

// giveBackStray gives back the strays of a stretch, if there are any; settled answers.
func (l *line) giveBackStray(now deadline.Instant) bool {
	for len(l.astray) > 0 {
		s := l.byID[l.astray[0]]
		l.astray = l.astray[1:]
		if s != nil && s.phase == sealed && s.strangers > 0 {
			l.giveBackStrangers(now, s)
			return true
		}
	}
	return false
}
