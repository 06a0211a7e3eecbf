package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/monitor/incident"
)

// openIncidents makes the incidents of the node. They know nothing until the node is open.
func (n *Node) openIncidents() (err error) {
	o := n.settings.AlertOptions()
	o.Log, o.Registerer, o.Stalled = n.log, n.metrics, n.stalled
	o.Look = func(s *incident.State) {
		if n.opened.Load() {
			n.looker.look(n, s)
		}
	}
	o.Hour = func(tally func()) (hour deadline.Hour) {
		n.expired.Between(func() {
			tally()
			hour = n.history.ExpiredInAnHour()
		})
		return hour
	}
	if own, is := n.primary.(*ownBroker); is { // otherwise there is nowhere to publish
		o.Publish = (&eventExchange{own: own}).publish
	}
	n.incidents, err = incident.New(o)
	return err
}

// recordHold counts that the lock of a queue was held for long.
func (n *Node) recordHold(h broker.Held) {
	n.incidents.Record(incident.Event{
		Kind: incident.LockHeld, VHost: h.VHost, Queue: h.Queue, Hold: incident.Hold{Operation: h.Operation, For: h.For}, Stats: incident.Stats{Count: 1},
	})
}

// eventsExchange is where notifications are published, in the default virtual host.
const eventsExchange = "curfew.events"

// eventExchange publishes notifications in the bundled broker. Safe for concurrent use.
type eventExchange struct {
	own       *ownBroker
	mu        sync.Mutex
	vhost     *broker.VHost // of publisher
	publisher *broker.Publisher
}

// publish is incident.Options.Publish. Messages are persistent: durable queues bound there keep them.
func (x *eventExchange) publish(_ context.Context, e incident.Publication) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.open(); err != nil {
		return err
	}
	p := amqp.Properties{
		ContentType: e.ContentType, DeliveryMode: 2, MessageID: e.MessageID, Timestamp: amqp.Timestamp(time.Now().Unix()), AppID: "curfew",
	}
	_, err := x.publisher.Add(&broker.Publication{
		Exchange: []byte(eventsExchange), RoutingKey: []byte(e.RoutingKey), Properties: p.Append(nil), Body: e.Body,
	})
	if err == nil {
		x.publisher.Flush(nil)
	}
	return err
}

// open declares the exchange, since a user may have deleted it.
func (x *eventExchange) open() error {
	vh, ok := x.own.broker.VHost("/")
	if !ok {
		return fmt.Errorf("there is no virtual host \"/\" for the exchange %s", eventsExchange)
	}
	if vh != x.vhost {
		x.vhost, x.publisher = vh, vh.OwnPublisher()
	}
	return vh.Exchanges.Declare(eventsExchange, broker.ExchangeDeclare{Kind: "topic", Durable: true})
}
