package server

import (
	"sync/atomic"

	"curfew/broker"
)

// ChannelCounts are totals of one channel (RabbitMQ: message_stats).
type ChannelCounts struct {
	Published      uint64
	Confirmed      uint64 // positively
	Returned       uint64 // mandatory and unroutable
	Dropped        uint64 // unroutable and not mandatory
	Delivered      uint64 // to consumers that settle
	DeliveredNoAck uint64
	Got            uint64 // by basic.get, to be settled
	GotNoAck       uint64
	GetEmpty       uint64 // basic.get that found nothing
	Acked          uint64
	Redelivered    uint64
}

// out counts a message handed out.
func (c *ChannelCounts) out(get, noAck, redelivered bool) {
	switch {
	case get && noAck:
		c.GotNoAck++
	case get:
		c.Got++
	case noAck:
		c.DeliveredNoAck++
	default:
		c.Delivered++
	}
	if redelivered {
		c.Redelivered++
	}
}

// publishTally is what a channel's reader counted since the last flush.
type publishTally struct{ published, returned, dropped uint64 }

// fold hands over what the reader counted since the last flush, once a batch.
func (ch *channel) fold() {
	n, t := &ch.tally, &ch.conn.srv.totals
	if n.published == 0 {
		return
	}
	t.received.Add(n.published)
	if ch.confirm {
		t.receivedConfirm.Add(n.published)
	}
	if n.returned > 0 {
		t.returned.Add(n.returned)
	}
	if n.dropped > 0 {
		t.dropped.Add(n.dropped)
	}
	ch.mu.Lock()
	ch.counts.Published += n.published
	ch.counts.Returned += n.returned
	ch.counts.Dropped += n.dropped
	ch.mu.Unlock()
	*n = publishTally{}
}

// totals are the server's since its start; writers add to them once a batch.
type totals struct {
	connectionsOpened, connectionsClosed atomic.Uint64
	channelsOpened, channelsClosed       atomic.Uint64
	received, receivedConfirm, confirmed atomic.Uint64
	returned, dropped                    atomic.Uint64
	logins, loginsFailed                 atomic.Uint64
	repliesLost                          atomic.Uint64 // direct replies
}

// Totals are the server's since its start.
type Totals struct {
	ConnectionsOpened, ConnectionsClosed uint64
	ChannelsOpened, ChannelsClosed       uint64
	Received                             uint64 // publishes
	ReceivedConfirm                      uint64 // on channels that confirm
	Confirmed                            uint64
	Returned, Dropped                    uint64 // unroutable: mandatory or not
	Logins, LoginsFailed                 uint64
}

// Totals returns the server's totals.
func (s *Server) Totals() Totals {
	t := &s.totals
	return Totals{
		ConnectionsOpened: t.connectionsOpened.Load(), ConnectionsClosed: t.connectionsClosed.Load(),
		ChannelsOpened: t.channelsOpened.Load(), ChannelsClosed: t.channelsClosed.Load(),
		Received: t.received.Load(), ReceivedConfirm: t.receivedConfirm.Load(), Confirmed: t.confirmed.Load(),
		Returned: t.returned.Load(), Dropped: t.dropped.Load(), Logins: t.logins.Load(), LoginsFailed: t.loginsFailed.Load(),
	}
}

// RepliesLost is how many direct replies were lost because their client did not take what
// it was sent.
func (s *Server) RepliesLost() uint64 { return s.totals.repliesLost.Load() }

// countSettled counts deliveries that a settlement ended; called with mu held.
func (ch *channel) countSettled(how broker.Settlement) {
	if how == broker.Ack {
		ch.counts.Acked += uint64(len(ch.ending))
	}
}

// ask notes that so many more publishes are to be confirmed.
func (ch *channel) ask(n uint64) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.asked += n
}
