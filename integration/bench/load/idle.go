package load

import (
	"fmt"

	"curfew/broker/amqp"
)

// Idle is a workload of connections and queues that do nothing.
type Idle struct {
	URL         string `json:"url"`
	Connections int    `json:"connections"` // each with an open channel
	Queues      int    `json:"queues"`      // transient
	Used        int    `json:"used"`        // messages that have passed through each queue and each connection before
}

// idleBody is the size of these messages.
const idleBody = 1024

// Open creates the queues and connections, and one more connection to create them with. The
// caller closes the connections; the queues stay until the broker ends. Without Connections
// no connection stays open.
func (d Idle) Open() (conns []*Conn, err error) {
	admin, err := logIn(d.URL)
	if err != nil {
		return nil, err
	}
	conns = append(conns, admin)
	queues := Spec{Name: runName(), Queues: d.Queues}
	if err := queues.declare(admin); err != nil {
		return conns, fmt.Errorf("load: declare: %w", err)
	}
	for q := range d.Queues {
		if err := d.use(admin, queues.QueueName(q)); err != nil {
			return conns, err
		}
	}
	if d.Connections == 0 {
		return nil, admin.Close()
	}
	through := queues.Name + "through"
	if _, err := admin.Call(channel, &amqp.QueueDeclare{Queue: through}, amqp.QueueDeclareOkID); err != nil {
		return conns, err
	}
	for range d.Connections {
		c, err := logIn(d.URL)
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
		if err := d.use(c, through); err != nil {
			return conns, err
		}
	}
	return conns, nil
}

// use sends messages through a queue and takes them out again.
func (d Idle) use(c *Conn, queue string) error {
	body := make([]byte, idleBody)
	for range d.Used {
		c.out = appendPublish(c.out, queue, 0, false, body)
	}
	for range d.Used {
		c.queueMethod(channel, &amqp.BasicGet{Queue: queue, NoAck: true})
	}
	if err := c.flush(); err != nil {
		return err
	}
	for range d.Used {
		if _, err := c.await(amqp.BasicGetOkID); err != nil {
			return err
		}
	}
	return nil
}
