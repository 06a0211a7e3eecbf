package messages

import (
	"context"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/operate"
	"curfew/broker/queue"
)

// Content is what pages show of a message.
type Content struct {
	Exchange   string             `json:"-" label:"Exchange" faint:"(default exchange)"`
	Key        string             `json:"-" label:"Routing key" faint:"none"`
	Properties operate.Properties `json:"-" label:"Properties" is:"properties"`
	Size       int64              `json:"-" label:"Size" is:"bytes"`
	Body       operate.Body       `json:"-" label:"Body" is:"body"`
}

// maxView bounds how much of a body a page shows, in bytes.
const maxView = 64 << 10

func contentOf(x *broker.Browsed) Content {
	p, _ := x.Decode() // none if they cannot be read
	body := x.Message.Body[:min(len(x.Message.Body), maxView)]
	return Content{string(x.Message.Exchange), string(x.Message.RoutingKey), p, int64(x.BodyBytes), operate.Body{Start: append([]byte(nil), body...), Bytes: x.BodyBytes}}
}

// MessageName names a message of a queue, in any incarnation of the queue or in one.
type MessageName struct {
	VHost   string `json:"vhost"`
	Queue   string `json:"queue" form:"name"`
	QueueID uint64 `json:"queue_id" form:"queue" is:"text"`
	Seq     Number `json:"seq"`
}

// MessageRow is a message that a page is about.
type MessageRow struct {
	VHost    string    `json:"vhost" hide:"page"`
	Queue    string    `json:"queue" form:"name" hide:"page"`
	QueueID  uint64    `json:"queue_id" form:"queue" hide:"page"`
	Seq      queue.Seq `json:"seq" hide:"page"`
	Was      int64     `json:"was" form:"deadline" hide:"page"`
	Deadline int64     `json:"-" form:"due" label:"Deadline" is:"instant"`
	State    string    `json:"-" label:"State"`
	Content
}

// LookAtMessage is the list of one message, with the beginning of its body.
var LookAtMessage = operate.Define(operate.Op{
	Name: "look_at_message", Noun: "message", Title: "Show one message", Rule: operate.Rules[operate.Peek], Quiet: true,
}, func(ctx context.Context, c *operate.Call, r MessageName) ([]MessageRow, error) {
	m, err := c.Look(ctx, c.Actor, operate.QueueName{VHost: r.VHost, Name: r.Queue}, queue.Seq(r.Seq), maxView)
	if err == nil && r.QueueID != 0 && r.QueueID != m.QueueID {
		err = operate.ErrMessageGone // the number is another message's
	}
	if err != nil {
		return nil, err
	}
	row := MessageRow{r.VHost, r.Queue, m.QueueID, m.Seq, m.DeadlineMillis, m.DeadlineMillis, m.State.String(), contentOf(&m.Browsed)}
	if m.State == queue.Unacked {
		row.State = "held by a consumer"
	}
	return []MessageRow{row}, nil
})

// Getting is what becomes of the first message of a queue.
type Getting struct {
	VHost string `json:"vhost"`
	Queue string `json:"queue" form:"name"`
	Then  string `json:"then" start:"requeue" oneof:"requeue reject ack" texts:"put it back, marked as redelivered|reject it: it is dead-lettered, or dropped|remove it for good"`
}

// Got is a message as a consumer would have received it.
type Got struct {
	Redelivered bool `json:"-" label:"Redelivered" omit:""`
	Content
	Behind  int `json:"-" label:"Behind it"`
	putBack bool
}

// Words implements operate.Effect.
func (m *Got) Words() (sentences []string, harm, more bool) {
	switch {
	case m == nil:
		return []string{"No message is ready."}, false, false
	case m.putBack:
		return []string{"It is back in the queue."}, false, false
	}
	return []string{"It left the queue."}, false, false
}

// GetMessage takes a message as a consumer would, and shows it.
var GetMessage = operate.Define(operate.Op{
	Name: operate.Get, Title: "Get a message", Rule: operate.Rules[operate.Get], Quiet: true, // Get records it
	Page: operate.Page{On: "/queue/get", Title: "Get a message", Tab: "/queues", Parent: "/queue", Rows: "look_at_queue", About: true, Button: "Get it", Stays: true,
		Then: "This takes the first ready message as a consumer would, before the page with it is sent: if the connection breaks in between, a message removed for good is lost unseen. To look without taking a message, use the queue's page.",
		May: func(o *operate.Operations, a operate.Actor, asked any) bool {
			return operate.MayQueue(o, a, access.Read, asked.(Getting).VHost, asked.(Getting).Queue)
		}},
}, func(ctx context.Context, c *operate.Call, r Getting) (got *Got, err error) {
	request := map[string]operate.GetRequest{"requeue": {After: broker.PutBack}, "reject": {After: broker.Reject}, "ack": {NoAck: true}}[r.Then]
	request.Queue, request.Count = operate.QueueName{VHost: r.VHost, Name: r.Queue}, 1
	err = c.Get(ctx, c.Actor, request, func(d *broker.Delivery) {
		x := broker.Browsed{Message: d.Message, BodyBytes: len(d.Message.Body)}
		got = &Got{Redelivered: d.Redelivered, Content: contentOf(&x), Behind: d.Ready, putBack: r.Then == "requeue"}
	})
	return got, err
})
