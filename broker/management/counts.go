package management

import (
	"curfew/broker"
	"curfew/broker/management/rates"
	"curfew/broker/server"
)

// queueCounts returns a queue's message_stats.
func queueCounts(c *broker.QueueStats) rates.Counts {
	return rates.Counts{
		"publish": c.Published, "deliver": c.Delivered, "deliver_no_ack": c.DeliveredNoAck,
		"get": c.Got, "get_no_ack": c.GotNoAck, "get_empty": c.GetEmpty, "deliver_get": c.AllDelivered(),
		"ack": c.Acked, "redeliver": c.Redelivered, "disk_writes": c.Journaled, "disk_reads": 0,
	}
}

// exchangeCounts returns an exchange's message_stats.
func exchangeCounts(x *broker.ExchangeInfo) rates.Counts {
	return rates.Counts{"publish_in": x.PublishedIn, "publish_out": x.PublishedOut}
}

// channelCounts returns a channel's message_stats.
func channelCounts(c *server.ChannelStats) rates.Counts {
	return rates.Counts{
		"publish": c.Published, "confirm": c.Confirmed, "return_unroutable": c.Returned, "drop_unroutable": c.Dropped,
		"deliver": c.Delivered, "deliver_no_ack": c.DeliveredNoAck, "get": c.Got, "get_no_ack": c.GotNoAck, "get_empty": c.GetEmpty,
		"deliver_get": c.Delivered + c.DeliveredNoAck + c.Got + c.GotNoAck, "ack": c.Acked, "redeliver": c.Redelivered,
	}
}

// totals returns the broker's message_stats.
func (a *API) totals() rates.Counts {
	t, s := a.b.Stats(), a.Server.Stats()
	c := queueCounts(&t.Queues)
	c["publish"], c["confirm"] = t.Published, s.Confirmed
	c["return_unroutable"], c["drop_unroutable"] = s.Returned, t.Unroutable-min(s.Returned, t.Unroutable)
	ready, unacked := a.depth()
	c["messages"], c["messages_ready"], c["messages_unacknowledged"] = uint64(ready+unacked), uint64(ready), uint64(unacked)
	return c
}

// depth returns how many messages are in all queues.
func (a *API) depth() (ready, unacked int) {
	for _, vh := range a.b.VHosts() {
		r, u := depthOf(vh)
		ready, unacked = ready+r, unacked+u
	}
	return ready, unacked
}

func depthOf(vh *broker.VHost) (ready, unacked int) {
	for _, q := range vh.Queues() {
		r, u, _ := q.Counts()
		ready, unacked = ready+r, unacked+u
	}
	return ready, unacked
}

// churn returns how often connections, channels and queues were opened and closed.
func (a *API) churn() rates.Counts {
	t, s := a.b.Stats(), a.Server.Stats()
	return rates.Counts{
		"connection_created": s.ConnectionsOpened, "connection_closed": s.ConnectionsClosed,
		"channel_created": s.ChannelsOpened, "channel_closed": s.ChannelsClosed,
		"queue_declared": t.QueuesDeclared, "queue_created": t.QueuesCreated, "queue_deleted": t.QueuesDeleted,
	}
}

// messageStats returns totals with rates, without gauges.
func (a *API) messageStats(key any, c rates.Counts) object {
	o := a.rates.Stats(key, c)
	for _, gauge := range []string{"messages", "messages_ready", "messages_unacknowledged"} {
		delete(o, gauge)
		delete(o, gauge+"_details")
	}
	return o
}

// messages adds the numbers of messages.
func (a *API) messages(o object, key any, ready, unacked int) {
	a.rates.Gauge(o, key, "messages", ready+unacked)
	a.rates.Gauge(o, key, "messages_ready", ready)
	a.rates.Gauge(o, key, "messages_unacknowledged", unacked)
}

// Keys of things in rates.
type (
	churnKey struct{}
	totalKey struct{}
	queueKey uint64 // incarnation
	exchKey  struct{ vhost, name string }
)

// countAll returns the counts of everything that has rates.
func (a *API) countAll() map[any]rates.Sampled {
	seen := map[any]rates.Sampled{churnKey{}: a.churn().Sampled(), totalKey{}: a.totals().Sampled()}
	for _, vh := range a.b.VHosts() {
		for _, q := range vh.Queues() {
			i := q.Info()
			c := queueCounts(&i.Stats)
			c["messages_ready"], c["messages_unacknowledged"] = uint64(i.Ready), uint64(i.Unacked)
			c["messages"] = uint64(i.Ready + i.Unacked)
			seen[queueKey(i.ID)] = c.Sampled()
		}
		for _, x := range vh.Exchanges() {
			seen[exchKey{x.VHost, x.Name}] = exchangeCounts(&x).Sampled()
		}
	}
	for _, c := range a.Server.List() {
		seen[c.Identity()] = rates.Counts{"recv_oct": c.Received, "send_oct": c.Sent}.Sampled()
		for _, ch := range c.Channels {
			seen[ch.Identity()] = channelCounts(&ch.Stats).Sampled()
		}
	}
	return seen
}
