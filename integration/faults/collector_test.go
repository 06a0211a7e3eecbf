package faults

import (
	"sync"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/faults/history"
)

// collector consumes from one queue and does with each delivery what it is told to.
type collector struct {
	log   *history.Log
	ch    *amqp091.Channel
	by    string
	queue string

	mu    sync.Mutex
	taken []amqp091.Delivery
	shut  bool // close was called: what still comes is given back
	gone  bool // the broker has ended the consumer
}

// collect starts a consumer that acks everything, or keeps everything.
func (tr *trial) collect(conn *amqp091.Connection, by, queue string, ack bool) *collector {
	tr.t.Helper()
	ch, err := conn.Channel()
	check(tr.t, err)
	tr.log.Append(history.Event{Kind: history.Opened, At: now(), By: by, Queue: queue})
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	check(tr.t, err)
	c := &collector{log: tr.log, ch: ch, by: by, queue: queue}
	go c.run(deliveries, ack)
	return c
}

func (c *collector) run(deliveries <-chan amqp091.Delivery, ack bool) {
	for d := range deliveries {
		c.take(d, ack)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
}

func (c *collector) take(d amqp091.Delivery, ack bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shut {
		return
	}
	seen(c.log, c.by, c.queue, &d)
	if ack {
		settle(c.log, c.by, c.queue, &d, history.Ack)
	}
	c.taken = append(c.taken, d)
}

// count is how many deliveries there were; <0 when there will be no more.
func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return -1
	}
	return len(c.taken)
}

// settle settles the delivery of that number.
func (c *collector) settle(i int, how history.Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	settle(c.log, c.by, c.queue, &c.taken[i], how)
}

// close gives back what is held.
func (c *collector) close() {
	c.mu.Lock()
	c.shut = true
	c.log.Append(history.Event{Kind: history.Closed, At: now(), By: c.by})
	c.mu.Unlock()
	_ = c.ch.Close() // the connection may have gone
}
