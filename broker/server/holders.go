package server

import (
	"cmp"
	"slices"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/server/internal/deliveries"
)

// UnackedHolder is a consumer of a queue, or a channel that holds unacked messages by basic.get.
type UnackedHolder struct {
	ConsumerInfo            // without a tag for basic.get
	Cancelled    bool       // the consumer is gone; its channel still holds what it was sent
	Properties   amqp.Table // the client's properties; must not be changed
	Unacked      int
	Oldest       deadline.Instant // when the oldest of them was delivered; 0: none
	PastDeadline int              // how many of them are past their deadlines
	Earliest     deadline.Instant // the earliest deadline of these; 0: none
}

// UnackedHolders returns the consumers of all queues, and the channels that hold messages of them by basic.get. No lock
// is held for longer than a few thousand deliveries take, so the result is not a snapshot.
func (s *Server) UnackedHolders() (all []UnackedHolder) {
	now := s.opts.Broker.Now()
	for _, c := range s.open() {
		if i := c.identity.Load(); i != nil {
			of := c.info(i)
			for _, ch := range c.channels.list() {
				all = append(all, holdersOf(ch, &of, now)...)
			}
		}
	}
	return all
}

// holderKey distinguishes the holders of a channel; c is nil for basic.get.
type holderKey struct {
	q *broker.Queue
	c *deliveries.Consumer
}

func holdersOf(ch *channel, of *ConnectionInfo, now deadline.Instant) []UnackedHolder {
	var list []*UnackedHolder
	known := map[holderKey]*UnackedHolder{}
	for _, c := range ch.deliveries.Info().Consumers {
		list = append(list, &UnackedHolder{ConsumerInfo: ch.consumerInfo(c, of), Properties: of.ClientProperties})
		known[holderKey{c.Queue, c}] = list[len(list)-1]
	}
	var page []deliveries.Unacked
	for tag := uint64(0); ; {
		page, tag = ch.deliveries.Page(tag, page[:0])
		if len(page) == 0 {
			break
		}
		page = slices.DeleteFunc(page, func(d deliveries.Unacked) bool { return d.Seq == 0 })
		slices.SortStableFunc(page, func(x, y deliveries.Unacked) int { return cmp.Compare(x.Queue.ID, y.Queue.ID) })
		deadlines := deliveries.Deadlines(page)
		for i, d := range page {
			h := known[holderKey{d.Queue, d.Consumer}]
			if h == nil {
				h = &UnackedHolder{Properties: of.ClientProperties, ConsumerInfo: ConsumerInfo{
					Queue: d.Queue, Channel: ch.id, Connection: of.Name, User: of.User, PeerHost: of.PeerHost, PeerPort: of.PeerPort,
					TimeoutMillis: deliveries.Timeout(d.Queue, nil, ch.conn.srv.timeoutMillis),
				}}
				if d.Consumer != nil {
					h.ConsumerInfo, h.Cancelled = ch.consumerInfo(d.Consumer, of), true
				}
				list = append(list, h)
				known[holderKey{d.Queue, d.Consumer}] = h
			}
			h.add(d.At, deadlines[i], now)
		}
	}
	slices.SortFunc(list, func(x, y *UnackedHolder) int {
		return cmp.Or(cmp.Compare(x.Tag, y.Tag), cmp.Compare(x.Queue.Name, y.Queue.Name))
	})
	all := make([]UnackedHolder, len(list))
	for i := range list {
		all[i] = *list[i]
	}
	return all
}

func (h *UnackedHolder) add(at, due, now deadline.Instant) {
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
