package observe

import (
	"fmt"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/monitor/rabbitmq/cluster"
)

// maxTaps bounds the queues that are tapped: RabbitMQ allows 2,047 channels for one
// connection.
const maxTaps = 2_000

// View is what is in the virtual host, and which queues are observed. Nobody may change it
// after it was given to an Observer.
type View struct {
	Inventory *cluster.Inventory
	Observed  map[string]bool // the queues of Inventory that are observed, by name
	Exchanges map[string]cluster.Exchange
	Bindings  []cluster.Binding
	Unknown   error // why exchanges and bindings are not known; nil: they are known. Existing taps stay as they are
}

// apply ties taps to the queues that can be tapped. The error is that of a lost connection.
func (o *Observer) apply(conn *amqp091.Connection, v *View) error {
	taps := 0
	for at := range v.Inventory.Queues {
		q := &v.Inventory.Queues[at]
		if !v.Observed[q.Name] {
			continue
		}
		w := o.of(q.Name)
		if v.Unknown != nil && w.tap != nil && !w.tap.gone.Load() { // the management API did not answer: the earlier facts still count
			taps++
			continue
		}
		w.checkPublished(q)
		reason := w.untappable(v, q)
		if reason == "" && taps == maxTaps {
			reason = fmt.Sprintf("%d queues are tapped already.", maxTaps)
		}
		if err := w.adjust(conn, q, reason, v.Bindings); err != nil {
			if conn.IsClosed() {
				return err
			}
			w.setReason("RabbitMQ refuses its tap: " + err.Error())
		}
		if w.tap == nil {
			w.mu.Lock()
			w.ready, w.consumers = int(q.Ready), q.Consumers
			w.mu.Unlock()
		} else {
			taps++
		}
	}
	for _, w := range o.watched() {
		if v.Inventory.Queue(w.name) == nil || !v.Observed[w.name] {
			w.untap()
			o.mu.Lock()
			delete(o.queues, w.name)
			o.mu.Unlock()
		}
	}
	return nil
}

// untappable returns why a tap would give a wrong picture; "": it would not.
func (w *watched) untappable(v *View, q *cluster.Queue) string {
	if v.Unknown != nil {
		return v.Unknown.Error()
	}
	if reason := Untappable(v.Inventory, q, v.Exchanges, v.Bindings); reason != "" {
		return reason
	}
	if w.strangers >= strangers {
		return bypassed
	}
	return w.refused
}
