package faults

import (
	"fmt"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/faults/history"
)

const drainLimit = 2 * time.Minute

// drain takes and acks all there is in all queues, until nothing is left anywhere.
func (tr *trial) drain() {
	tr.t.Helper()
	conn := tr.dial()
	defer conn.Close()
	var drains []*drain
	for _, q := range queues {
		ch, err := conn.Channel()
		check(tr.t, err)
		d := &drain{tr: tr, ch: ch, queue: q.name, by: fmt.Sprintf("drain%d/%s", tr.life, q.name)}
		tr.log.Append(history.Event{Kind: history.Opened, At: now(), By: d.by, Queue: d.queue})
		drains = append(drains, d)
	}
	eventually(tr.t, drainLimit, "all queues to be empty", func() bool {
		for _, d := range drains {
			d.all()
		}
		return tr.process.metric("curfew_messages_ready")+tr.process.metric("curfew_messages_unacked") == 0 && tr.quiet()
	})
	for _, d := range drains {
		d.end()
	}
	tr.log.Append(history.Event{Kind: history.Drained, At: now()})
}

// quiet reports whether no deadline is left to fire.
func (tr *trial) quiet() bool { return tr.process.metric("curfew_deadlines_pending") == 0 }

// drain is a channel that gets messages one by one.
type drain struct {
	tr    *trial
	ch    *amqp091.Channel
	queue string
	by    string
}

func (d *drain) all() {
	d.tr.t.Helper()
	for {
		m, ok, err := d.ch.Get(d.queue, false)
		check(d.tr.t, err)
		if !ok {
			break
		}
		seen(d.tr.log, d.by, d.queue, &m)
		settle(d.tr.log, d.by, d.queue, &m, history.Ack)
	}
	check(d.tr.t, d.ch.Qos(0, 0, false))
	d.tr.log.Append(history.Event{Kind: history.Synced, At: now(), By: d.by})
}

func (d *drain) end() {
	d.tr.log.Append(history.Event{Kind: history.Closed, At: now(), By: d.by})
	check(d.tr.t, d.ch.Close())
}
