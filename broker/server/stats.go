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

// Totals are what a server has counted since its start. They are updated once a batch, by the server alone.
type Totals struct {
	ConnectionsOpened, ConnectionsClosed atomic.Uint64
	ChannelsOpened, ChannelsClosed       atomic.Uint64
	Received                             atomic.Uint64 // publishes
	ReceivedConfirm                      atomic.Uint64 // on channels that confirm
	Confirmed                            atomic.Uint64
	Returned, Dropped                    atomic.Uint64 // unroutable: mandatory or not
	RepliesLost                          atomic.Uint64 // direct replies
}

func (t *Totals) addPublishes(n *publishCounts, confirm bool) {
	t.Received.Add(n.published)
	if confirm {
		t.ReceivedConfirm.Add(n.published)
	}
	addSome(&t.Returned, n.returned)
	addSome(&t.Dropped, n.dropped)
}
