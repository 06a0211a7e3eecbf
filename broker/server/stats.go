package server

import (
	"sync/atomic"

	"curfew/broker"
)

// ChannelStats are the totals of one channel (RabbitMQ: message_stats).
type ChannelStats struct {
	Published uint64
	Confirmed uint64 // with basic.ack
	Returned  uint64 // mandatory and unroutable
	Dropped   uint64 // unroutable and not mandatory
	broker.MessageStats
}

// publishCounts is what a channel's reader has counted since the last flush.
type publishCounts struct{ published, returned, dropped uint64 }

// publishTotals are the totals of one channel. They are updated once a batch, by its reader.
type publishTotals struct{ published, returned, dropped atomic.Uint64 }

func (t *publishTotals) add(n *publishCounts) {
	t.published.Add(n.published)
	addSome(&t.returned, n.returned)
	addSome(&t.dropped, n.dropped)
}

// addSome skips the addition of 0, which is cheaper.
func addSome(total *atomic.Uint64, n uint64) {
	if n > 0 {
		total.Add(n)
	}
}

// totals are the server's totals since its start. They are updated once a batch.
type totals struct {
	connectionsOpened, connectionsClosed atomic.Uint64
	channelsOpened, channelsClosed       atomic.Uint64
	received, receivedConfirm, confirmed atomic.Uint64
	returned, dropped                    atomic.Uint64
	repliesLost                          atomic.Uint64 // direct replies
}

func (t *totals) addPublishes(n *publishCounts, confirm bool) {
	t.received.Add(n.published)
	if confirm {
		t.receivedConfirm.Add(n.published)
	}
	addSome(&t.returned, n.returned)
	addSome(&t.dropped, n.dropped)
}

// Stats are the server's totals since its start.
type Stats struct {
	ConnectionsOpened, ConnectionsClosed uint64
	ChannelsOpened, ChannelsClosed       uint64
	Received                             uint64 // publishes
	ReceivedConfirm                      uint64 // on channels that confirm
	Confirmed                            uint64
	Returned, Dropped                    uint64 // unroutable: mandatory or not
}

// Stats returns the server's totals.
func (s *Server) Stats() Stats {
	t := &s.totals
	return Stats{
		ConnectionsOpened: t.connectionsOpened.Load(), ConnectionsClosed: t.connectionsClosed.Load(),
		ChannelsOpened: t.channelsOpened.Load(), ChannelsClosed: t.channelsClosed.Load(),
		Received: t.received.Load(), ReceivedConfirm: t.receivedConfirm.Load(), Confirmed: t.confirmed.Load(),
		Returned: t.returned.Load(), Dropped: t.dropped.Load(),
	}
}
