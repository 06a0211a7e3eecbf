package messages

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/operate"
)

var _ = operate.Group("scheduled", "List, cancel and reschedule the delayed messages that you have published")

const scheduledNoun = "scheduled message"

// scheduledPages bounds how much of a virtual host's delayed messages one list looks through, in pages of 1000.
const (
	scheduledPages = 1000
	delayedPage    = 1000
)

// ScheduledList says which scheduled messages to list: of a virtual host, or of all.
type ScheduledList struct {
	VHost string `json:"vhost" hide:"page"`
	Count int64  `json:"count" flag:"count,n" default:"1000" min:"1" max:"10000" hide:"page" doc:"how many to list at most: 1 to 10000"`
}

// ScheduledMessage is a delayed message of the actor's that has a message-id.
type ScheduledMessage struct {
	VHost      string `json:"vhost" hide:"table"`
	Exchange   string `json:"exchange"` // amq.default: the default exchange
	ID         string `json:"message_id" label:"Message ID" table:"MESSAGE-ID"`
	RoutingKey string `json:"routing_key" label:"Routing key" table:"KEY"`
	Due        int64  `json:"due" is:"instant" until:"IN"` // Unix ms by the wall clock
	Bytes      int    `json:"payload_bytes" label:"Bytes" table:"BYTES?"`
}

// ScheduledName names a delayed message of the actor's: the newest with this message-id that was published to this exchange.
type ScheduledName struct {
	VHost    string `json:"vhost"`
	Exchange string `json:"exchange" log:"exchange" eg:"reminders" doc:"the exchange that it was published to; amq.default is the default one"`
	ID       string `json:"message_id" log:"message_id" eg:"cart-7"`
}

// ScheduledChange gives a delayed message another time.
type ScheduledChange struct {
	VHost    string `json:"vhost"`
	Exchange string `json:"exchange" log:"exchange" eg:"reminders" doc:"the exchange that it was published to; amq.default is the default one"`
	ID       string `json:"message_id" log:"message_id" eg:"cart-7"`
	In       string `json:"in" need:"key" log:"in" eg:"10m" doc:"How long from now it waits, such as 10m."`
}

const scheduledText = "The newest delayed message with this `message-id` that the user has published to this exchange, to which the user must be allowed to write. 404: none is known; 409: it is due, and is delivered or was."

// The operations on what the actor has scheduled. They are the commands that a publisher sends over AMQP, and whose answers say what won.
var (
	ListScheduled = operate.Define(operate.Op{
		Name: "list_scheduled", Title: "List the delayed messages that you have published", Rule: operate.Rule{Role: operate.Management}, Quiet: true, Watched: true, Slow: true,
		Text: "Those with a `message-id`, in the order of publishing.", Routes: []string{"GET /api/curfew/scheduled/{vhost}", "GET /api/curfew/scheduled"}, Command: "scheduled list",
		Page: operate.Page{On: "/scheduled", Title: "Scheduled by you", Tab: "/exchanges", Empty: "No delayed message with a message-id of yours waits."},
	}, listScheduled)
	CancelScheduled = operate.Define(operate.Op{
		Name: "cancel_scheduled", Noun: scheduledNoun, Title: "Cancel a delayed message that you have published", Rule: operate.Rule{Role: operate.Management},
		Text: scheduledText, Routes: []string{"DELETE /api/curfew/scheduled/{vhost}/{exchange}/{message_id}"}, Command: "scheduled cancel <exchange> <message_id>",
		Example: "  curfew scheduled cancel amq.default cart-7", Lists: "curfew scheduled list",
		Page: operate.Page{On: "/scheduled/cancel", Title: "Cancel the message", Tab: "/exchanges", Parent: "/scheduled", Up: "Scheduled by you", Rows: "list_scheduled", Link: "Cancel…", Danger: true, Button: "Cancel the message",
			Next: "/scheduled", Done: "Message cancelled.", Then: "It is never delivered."},
	}, func(ctx context.Context, c *operate.Call, q ScheduledName) (operate.None, error) {
		return operate.None{}, change(ctx, c, q, amqp.Table{"x-cancel": q.ID})
	})
	RescheduleScheduled = operate.Define(operate.Op{
		Name: "reschedule_scheduled", Noun: scheduledNoun, Title: "Have a delayed message that you have published wait for another time", Rule: operate.Rule{Role: operate.Management},
		Text: scheduledText, Routes: []string{"PUT /api/curfew/scheduled/{vhost}/{exchange}/{message_id}"}, Command: "scheduled reschedule <exchange> <message_id>",
		Example: "  curfew scheduled reschedule amq.default cart-7 --in 10m", Lists: "curfew scheduled list",
		Page: operate.Page{On: "/scheduled/change", Title: "Reschedule the message", Tab: "/exchanges", Parent: "/scheduled", Up: "Scheduled by you", Rows: "list_scheduled", Link: "Reschedule…", Button: "Reschedule",
			Next: "/scheduled", Done: "Message rescheduled."},
	}, func(ctx context.Context, c *operate.Call, q ScheduledChange) (none operate.None, err error) {
		in, err := time.ParseDuration(q.In)
		if err != nil || in < 0 {
			return none, &operate.Invalid{Reason: "in: " + strconv.Quote(q.In) + " is invalid: want a time such as 90s, 10m or 2h"}
		}
		return none, change(ctx, c, ScheduledName{q.VHost, q.Exchange, q.ID}, amqp.Table{"x-reschedule": q.ID, "x-delay": in.Milliseconds()})
	})
	DeliverScheduled = operate.Define(operate.Op{
		Name: "deliver_scheduled", Noun: scheduledNoun, Title: "Deliver a delayed message that you have published now", Rule: operate.Rule{Role: operate.Management},
		Text: scheduledText, Routes: []string{"POST /api/curfew/scheduled/{vhost}/{exchange}/{message_id}/now"}, Command: "scheduled now <exchange> <message_id>", Lists: "curfew scheduled list",
	}, func(ctx context.Context, c *operate.Call, q ScheduledName) (operate.None, error) {
		return operate.None{}, change(ctx, c, q, amqp.Table{"x-reschedule": q.ID, "x-delay": int64(0)})
	})
)

func listScheduled(ctx context.Context, c *operate.Call, r ScheduledList) ([]ScheduledMessage, error) {
	all := []ScheduledMessage{}
	for _, vh := range c.Within() {
		for n, from := 0, uint64(0); n == 0 || from != 0 && n <= scheduledPages && ctx.Err() == nil; n++ {
			var list []broker.DelayedMessage
			list, from = vh.Delayed(from, delayedPage)
			for i := range list {
				if m := &list[i]; m.ID != "" && m.User == c.Actor.Name {
					all = append(all, ScheduledMessage{vh.Name(), cmp.Or(m.Exchange, defaultExchange), m.ID, m.RoutingKey, c.Broker.UnixMillis(m.Ref.Deadline), int(m.Bytes)})
				}
				if len(all) == int(r.Count) {
					return all, ctx.Err()
				}
			}
		}
	}
	return all, ctx.Err()
}

// defaultExchange is what the API calls the exchange without a name.
const defaultExchange = "amq.default"

// answerWithin is how long a command may take: its answer waits for the disk.
const answerWithin = 30 * time.Second

// change sends a command as the actor, and waits for the answer. Errors: operate.ErrNotFound, operate.ErrTooLate, or those of a publish.
func change(ctx context.Context, c *operate.Call, q ScheduledName, command amqp.Table) error {
	answer := make(chan string, 1)
	replyTo := c.VHost.OpenReply(func(m *broker.Publication) {
		select {
		case answer <- string(m.Body):
		default: // there is only one
		}
	})
	defer c.VHost.CloseReply(replyTo)
	exchange := q.Exchange
	if exchange == defaultExchange {
		exchange = ""
	}
	key := c.VHost.ScheduledKey(exchange, c.Actor.Name, q.ID) // the message's own: topic permissions are about it
	p := c.Broker.RightsOf(c.Actor.Name, c.VHost.Name()).NewPublisher(c.VHost)
	properties := amqp.Properties{ReplyTo: replyTo, Headers: command}
	if _, err := p.Add(&broker.Publication{Exchange: []byte(exchange), RoutingKey: []byte(key), Properties: properties.Append(nil)}); err != nil {
		return err
	}
	p.Flush(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, answerWithin, operate.ErrNoAnswer)
	defer cancel()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case result := <-answer:
		switch result {
		case "too late":
			return operate.ErrTooLate
		case "not found":
			return operate.ErrNotFound
		}
		return nil
	}
}
