package node

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/operate"
	"curfew/monitor/alert"
)

// alertOptions are the options that the node's alerts and its dead man's switch share.
func (n *Node) alertOptions() alert.Options {
	o := n.settings.AlertOptions()
	o.Log, o.Registerer, o.Stalled = n.log, n.metrics, n.stalled
	return o
}

// openAlerts makes the alerts of the node.
func (n *Node) openAlerts() (err error) {
	o := n.alertOptions()
	if n.broker != nil { // otherwise there is nowhere to publish
		o.Exchange = &eventExchange{broker: n.broker}
		o.Holders = func() []alert.PastDeadline { return holders(n) }
	}
	n.alerts, err = alert.New(o)
	n.holdAlerts.Store(n.alerts)
	return err
}

// recordHolds returns what the broker tells that the lock of a queue was held for long.
func recordHolds(n *Node) func(broker.Held) {
	return func(h broker.Held) {
		n.holdAlerts.Load().Record(alert.Event{
			Kind: alert.QueueLockedLong, VHost: h.VHost, Queue: h.Queue, Hold: alert.Hold{Operation: h.Operation, For: h.For}, Stats: alert.Stats{Count: 1},
		})
	}
}

// holders are the consumers that hold messages past their deadlines now.
func holders(n *Node) (list []alert.PastDeadline) {
	if n.server == nil { // there cannot be a consumer yet
		return nil
	}
	for _, h := range n.server.UnackedHolders(func(*broker.Queue) bool { return true }) {
		if h.PastDeadline == 0 {
			continue
		}
		list = append(list, alert.PastDeadline{
			VHost: h.Queue.VHost().Name(), Queue: h.Queue.Name(), Connection: cmp.Or(operate.ClientOf(h.Properties).Name, h.Connection), User: h.User,
			Address: net.JoinHostPort(h.PeerHost, strconv.Itoa(h.PeerPort)), Count: h.PastDeadline, FirstDeadlineAt: n.broker.UnixMillis(h.Earliest),
		})
	}
	return list
}

// openDeadManSwitch makes the node's dead man's switch. Without an alerts file there is none.
func (n *Node) openDeadManSwitch() (err error) {
	if n.settings.Alerts == "" {
		return nil
	}
	n.deadManSwitch, err = alert.NewDeadManSwitch(n.alertOptions())
	return err
}

// runDeadManSwitch runs the dead man's switch until ctx ends.
func (n *Node) runDeadManSwitch(ctx context.Context) error {
	if n.deadManSwitch == nil {
		<-ctx.Done()
		return nil
	}
	return n.deadManSwitch.Run(ctx)
}

// firingAlerts counts the alerts that fire, by severity, and those that a silence covers.
type firingAlerts struct {
	Critical int `json:"critical"`
	Other    int `json:"other"`
	Silenced int `json:"silenced"`
}

// alertHealth reports problems of alerting, and critical alerts: while one fires, the service is degraded.
func (n *Node) alertHealth() healthReport {
	r := healthReport{Reasons: n.alerts.Health()}
	firing := firingAlerts{}
	for _, a := range n.alerts.List() {
		switch {
		case a.State == "silenced":
			firing.Silenced++
		case a.State != "firing":
		case a.Severity != "critical":
			firing.Other++
		default:
			if firing.Critical++; firing.Critical <= maxReasons {
				r.Reasons = append(r.Reasons, "critical: "+a.Summary)
			}
		}
	}
	if more := firing.Critical - maxReasons; more > 0 {
		r.Reasons = append(r.Reasons, fmt.Sprintf("%d more critical alerts: see curfew alert ls", more))
	}
	r.Detail = firing
	return r
}

// alertPart is the part of health that is about alerts.
const alertPart = "alerts"

// maxReasons is how many critical alerts health names.
const maxReasons = 5

// eventsExchange is where alerts are published, in the default virtual host.
const eventsExchange = "curfew.events"

// eventExchange publishes alerts in the bundled broker. For one goroutine.
type eventExchange struct {
	broker    *broker.Broker
	vhost     *broker.VHost // of publisher
	publisher *broker.Publisher
}

// Publish implements alert.Exchange. Messages are persistent: durable queues bound there keep them.
func (x *eventExchange) Publish(_ context.Context, e alert.Publication) error {
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
	vh, ok := x.broker.VHost("/")
	if !ok {
		return fmt.Errorf("there is no virtual host \"/\" for the exchange %s", eventsExchange)
	}
	if vh != x.vhost {
		x.vhost, x.publisher = vh, vh.OwnPublisher()
	}
	return vh.Exchanges.Declare(eventsExchange, broker.ExchangeDeclare{Kind: "topic", Durable: true})
}
