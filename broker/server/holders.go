package server

import (
	"cmp"
	"slices"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// Holder is who may hold messages of a queue unacked: a consumer, or a channel that gets them.
type Holder struct {
	ConsumerInfo            // of basic.get: without a tag
	Cancelled    bool       // the consumer is gone; its channel still holds what it was sent
	Properties   amqp.Table // the client's properties; must not be changed
	Unacked      int
	Oldest       deadline.Instant // when the oldest of them was delivered; 0: none
	PastDeadline int              // those of them whose deadlines have come
	Earliest     deadline.Instant // the earliest deadline of these; 0: none
}

// Holders returns the consumers of the queues for which match returns true, and the channels that hold messages of them by basic.get. No lock
// is held for longer than a few thousand deliveries take, so it is no snapshot.
func (s *Server) Holders(match func(*broker.Queue) bool) (all []Holder) {
	now := s.opts.Broker.Now()
	for _, c := range s.open() {
		if i := c.identity.Load(); i != nil {
			of := c.info(i)
			for _, ch := range c.listChannels() {
				all = append(all, holdersOf(ch, &of, now, match)...)
			}
		}
	}
	return all
}

// holderKey tells the holders of a channel apart; c is nil for basic.get.
type holderKey struct {
	q *broker.Queue
	c *consumer
}

func holdersOf(ch *channel, of *ConnectionInfo, now deadline.Instant, match func(*broker.Queue) bool) []Holder {
	var list []*Holder
	known := map[holderKey]*Holder{}
	ch.mu.Lock()
	for _, c := range ch.consumers {
		if match(c.on) {
			list = append(list, &Holder{ConsumerInfo: c.info(of), Properties: of.ClientProperties})
			known[holderKey{c.on, c}] = list[len(list)-1]
		}
	}
	ch.mu.Unlock()
	var page []unackedDelivery
	for tag := uint64(0); ; {
		ch.mu.Lock()
		page, tag = ch.unacked.page(tag, page[:0])
		ch.mu.Unlock()
		if len(page) == 0 {
			break
		}
		page = slices.DeleteFunc(page, func(d unackedDelivery) bool { return d.seq == 0 || !match(d.q) })
		slices.SortStableFunc(page, func(x, y unackedDelivery) int { return cmp.Compare(x.q.ID(), y.q.ID()) })
		deadlines := deadlinesOf(page)
		for i, d := range page {
			h := known[holderKey{d.q, d.c}]
			if h == nil {
				h = &Holder{ConsumerInfo: ConsumerInfo{Queue: d.q, Channel: ch.id, Connection: of.Name, User: of.User, PeerHost: of.PeerHost, PeerPort: of.PeerPort}, Properties: of.ClientProperties}
				if d.c != nil {
					h.ConsumerInfo, h.Cancelled = d.c.info(of), true
				}
				list = append(list, h)
				known[holderKey{d.q, d.c}] = h
			}
			h.add(d.at, deadlines[i], now)
		}
	}
	slices.SortFunc(list, func(x, y *Holder) int {
		return cmp.Or(cmp.Compare(x.Tag, y.Tag), cmp.Compare(x.Queue.Name(), y.Queue.Name()))
	})
	all := make([]Holder, len(list))
	for i := range list {
		all[i] = *list[i]
	}
	return all
}

// deadlinesOf asks the queues of a page, which is sorted by them, with one lock each.
func deadlinesOf(page []unackedDelivery) (all []deadline.Instant) {
	var seqs []queue.Seq
	for i, d := range page {
		seqs = append(seqs, d.seq)
		if i+1 == len(page) || page[i+1].q != d.q {
			all, seqs = d.q.DeadlinesOf(seqs, all), seqs[:0]
		}
	}
	return all
}

func (h *Holder) add(at, due, now deadline.Instant) {
	h.Unacked++
	if h.Oldest == 0 || at < h.Oldest {
		h.Oldest = at
	}
	if due == 0 || now < due {
		return
	}
	h.PastDeadline++
	if h.Earliest == 0 || due < h.Earliest {
		h.Earliest = due
	}
}
