package server

import (
	"sync/atomic"

	"curfew/broker"
)

// ChannelCounts are the totals of one channel (RabbitMQ: message_stats).
type ChannelCounts struct {
	Published      uint64
	Confirmed      uint64 // with basic.ack
	Returned       uint64 // mandatory and unroutable
	Dropped        uint64 // unroutable and not mandatory
	Delivered      uint64 // to consumers with manual acknowledgement
	DeliveredNoAck uint64
	Got            uint64 // by basic.get with manual acknowledgement
	GotNoAck       uint64
	GetEmpty       uint64 // basic.get on an empty queue
	Acked          uint64
	Redelivered    uint64
}

// countDelivered counts a message that was sent to the client.
func (c *ChannelCounts) countDelivered(get, noAck, redelivered bool) {
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

// publishCounts is what a channel's reader has counted since the last flush.
type publishCounts struct{ published, returned, dropped uint64 }

// foldCounts adds what the reader has counted to the totals, once a batch.
func (ch *channel) foldCounts() {
	n, t := &ch.pendingCounts, &ch.conn.srv.totals
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
	*n = publishCounts{}
}

// totals are the server's since its start. They are updated once a batch.
type totals struct {
	connectionsOpened, connectionsClosed atomic.Uint64
	channelsOpened, channelsClosed       atomic.Uint64
	received, receivedConfirm, confirmed atomic.Uint64
	returned, dropped                    atomic.Uint64
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
}

// Totals returns the server's totals.
func (s *Server) Totals() Totals {
	t := &s.totals
	return Totals{
		ConnectionsOpened: t.connectionsOpened.Load(), ConnectionsClosed: t.connectionsClosed.Load(),
		ChannelsOpened: t.channelsOpened.Load(), ChannelsClosed: t.channelsClosed.Load(),
		Received: t.received.Load(), ReceivedConfirm: t.receivedConfirm.Load(), Confirmed: t.confirmed.Load(),
		Returned: t.returned.Load(), Dropped: t.dropped.Load(),
	}
}

// RepliesLost returns how many direct replies were lost because their client did not read
// fast enough.
func (s *Server) RepliesLost() uint64 { return s.totals.repliesLost.Load() }

// countSettledLocked counts the deliveries that a settlement ended.
func (ch *channel) countSettledLocked(how broker.Settlement) {
	if how == broker.Ack {
		ch.counts.Acked += uint64(len(ch.settled))
	}
}

// expectConfirms adds n to the publishes that are to be confirmed.
func (ch *channel) expectConfirms(n uint64) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.toConfirm += n
}
