package messages

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/operate"
)

var _ = operate.Group("scheduled", "List, cancel and reschedule messages that wait until they are due, in Curfew or in a delay queue of RabbitMQ")

const scheduledNoun = "scheduled message"

// scheduledPages bounds how much of a virtual host's delayed messages one list looks through, in pages of 1000.
const (
	scheduledPages = 1000
	delayedPage    = 1000
)

// ScheduledList says which scheduled messages to list: of a virtual host, or of all.
type ScheduledList struct {
	VHost    string `json:"vhost" hide:"page"`
	Exchange string `json:"exchange" hide:"page" eg:"reminders" doc:"Only those that were published to this exchange; beside RabbitMQ, the delay queue that they wait in, which is needed."`
	ID       string `json:"message_id" hide:"page" doc:"only those with this message-id"`
	Before   string `json:"before" is:"duration" hide:"page" doc:"only those that are due within this time, such as 1h"`
	Count    int64  `json:"count" flag:"count,n" default:"1000" min:"1" max:"10000" hide:"page" doc:"how many to list at most: 1 to 10000"`
}

// ScheduledMessage is a delayed message of the actor's that has a message-id, or one in a delay queue of RabbitMQ.
type ScheduledMessage struct {
	VHost      string `json:"vhost" hide:"table"`
	Exchange   string `json:"exchange"` // amq.default: the default exchange; beside RabbitMQ, the delay queue
	ID         string `json:"message_id" label:"Message ID" table:"MESSAGE-ID"`
	RoutingKey string `json:"routing_key" label:"Routing key" table:"KEY"`
	Due        int64  `json:"due" is:"instant" until:"IN"`                // Unix ms by the wall clock; 0: it is not known
	Bytes      *int   `json:"payload_bytes" label:"Bytes" table:"BYTES?"` // null: that is not known
	To         string `json:"to,omitempty"`                               // of a queue of retries, the queue that it goes to
	Known      string `json:"known,omitempty" label:"By" table:"BY"`      // in a delay queue, how its due time is known
}

// ScheduledName names a delayed message of the actor's: the newest with this message-id that was published to this exchange.
type ScheduledName struct {
	VHost    string `json:"vhost"`
	Exchange string `json:"exchange" log:"exchange" eg:"reminders" doc:"the exchange that it was published to; amq.default is the default one; beside RabbitMQ, the delay queue"`
	ID       string `json:"message_id" log:"message_id" eg:"cart-7"`
}

// ScheduledChange gives a delayed message another time.
type ScheduledChange struct {
	ScheduledName
	In string `json:"in" is:"duration" need:"key" log:"in" eg:"10m" doc:"How long from now it waits, such as 10m."`
}

const scheduledText = "The newest delayed message with this `message-id` that the user has published to this exchange, to which the user must be allowed to write. 404: none is known; 409: it is due, and is delivered or was. " +
	"Beside RabbitMQ (`CURFEW_PRIMARY_URL`), `exchange` is a delay queue with mode `delay` or `retry`, the virtual host does not count, and the Curfew that keeps the queue has to be asked."

// The operations on what the actor has scheduled. They are the commands that a publisher sends over AMQP, and whose answers say what won; or those on the
// delay queues of RabbitMQ, which the Curfew that keeps the queue does.
var (
	ListScheduled = operate.Define(operate.Op{
		Name: "list_scheduled", Title: "List the delayed messages that you have published, or that wait in a delay queue of RabbitMQ", Rule: operate.Rule{Role: operate.Management}, Quiet: true, Watched: true, Slow: true, NoBroker: true,
		Text: "Those with a `message-id`, the first to be due first.", Routes: []string{"GET /api/curfew/scheduled/{vhost}", "GET /api/curfew/scheduled"},
		Command: "scheduled list [exchange]", Example: "  curfew scheduled list\n  curfew scheduled list --all\n  curfew scheduled list orders.delay --before 1h",
		Page: operate.Page{On: "/scheduled", Title: "Scheduled by you", Tab: "/exchanges", Empty: "No delayed message with a message-id of yours waits; those without one are listed with the delayed messages of all users."},
	}, listScheduled)
	CancelScheduled = operate.Define(operate.Op{
		Name: "cancel_scheduled", Noun: scheduledNoun, Title: "Cancel a message that waits: it is never delivered", Rule: operate.Rule{Role: operate.Management}, NoBroker: true,
		Text: scheduledText + " Administrators may name any message by its `id` in `/api/curfew/delayed`.", Routes: []string{"DELETE /api/curfew/scheduled/{vhost}/{exchange}/{message_id}"},
		Command: "scheduled cancel <exchange> <message_id>",
		Example: "  curfew scheduled cancel amq.default cart-7", Lists: "curfew scheduled list",
		Page: operate.Page{On: "/scheduled/cancel", Title: "Cancel the message", Tab: "/exchanges", Parent: "/scheduled", Up: "Scheduled by you", Rows: "list_scheduled", Link: "Cancel…", Danger: true, Button: "Cancel the message",
			Next: "/scheduled", Done: "Message cancelled.", Then: "It is never delivered."},
	}, func(ctx context.Context, c *operate.Call, q ScheduledName) (none operate.None, err error) {
		if c.Broker == nil {
			return none, c.Delays.CancelDelay(q.Exchange, q.ID)
		}
		if err = change(ctx, c, q, amqp.Table{"x-cancel": q.ID}); errors.Is(err, operate.ErrNotFound) && c.Actor.Has(operate.Administrator) {
			err = cancelDelayed(ctx, c, q.ID)
		}
		return none, err
	})
	RescheduleScheduled = operate.Define(operate.Op{
		Name: "reschedule_scheduled", Noun: scheduledNoun, Title: "Have a message that waits wait for another time", Rule: operate.Rule{Role: operate.Management}, NoBroker: true,
		Text: scheduledText, Routes: []string{"PUT /api/curfew/scheduled/{vhost}/{exchange}/{message_id}"}, Command: "scheduled reschedule <exchange> <message_id>",
		Example: "  curfew scheduled reschedule amq.default cart-7 --in 10m", Lists: "curfew scheduled list",
		Page: operate.Page{On: "/scheduled/change", Title: "Reschedule the message", Tab: "/exchanges", Parent: "/scheduled", Up: "Scheduled by you", Rows: "list_scheduled", Link: "Reschedule…", Button: "Reschedule",
			Next: "/scheduled", Done: "Message rescheduled."},
	}, func(ctx context.Context, c *operate.Call, q ScheduledChange) (none operate.None, err error) {
		in, _ := time.ParseDuration(q.In) // checked by its kind
		return none, reschedule(ctx, c, q.ScheduledName, in)
	})
	DeliverScheduled = operate.Define(operate.Op{
		Name: "deliver_scheduled", Noun: scheduledNoun, Title: "Deliver a message that waits now", Rule: operate.Rule{Role: operate.Management}, NoBroker: true,
		Text: scheduledText, Routes: []string{"POST /api/curfew/scheduled/{vhost}/{exchange}/{message_id}/now"}, Command: "scheduled now <exchange> <message_id>", Lists: "curfew scheduled list",
	}, func(ctx context.Context, c *operate.Call, q ScheduledName) (none operate.None, err error) {
		return none, reschedule(ctx, c, q, 0)
	})
)

func reschedule(ctx context.Context, c *operate.Call, q ScheduledName, in time.Duration) error {
	if c.Broker == nil {
		return c.Delays.Reschedule(q.Exchange, q.ID, in)
	}
	return change(ctx, c, q, amqp.Table{"x-reschedule": q.ID, "x-delay": in.Milliseconds()})
}

func listScheduled(ctx context.Context, c *operate.Call, r ScheduledList) (all []ScheduledMessage, err error) {
	within := time.Duration(math.MaxInt64 / 2)
	if r.Before != "" {
		within, _ = time.ParseDuration(r.Before)
	}
	if c.Broker == nil {
		return listDelays(c, r, within)
	}
	before := c.Broker.UnixMillis(c.Broker.Now()) + within.Milliseconds()
	for _, vh := range c.Within() {
		for n, from := 0, uint64(0); n == 0 || from != 0 && n <= scheduledPages && ctx.Err() == nil; n++ {
			var list []broker.DelayedMessage
			list, from = vh.Delayed(from, delayedPage)
			for i := range list {
				m := &list[i]
				one := ScheduledMessage{vh.Name(), cmp.Or(m.Exchange, operate.DefaultExchange), m.ID, m.RoutingKey, c.Broker.UnixMillis(m.Ref.Deadline), new(int(m.Bytes)), "", ""}
				if m.ID != "" && m.User == c.Actor.Name && (r.ID == "" || r.ID == m.ID) && (r.Exchange == "" || r.Exchange == one.Exchange) && one.Due <= before {
					all = append(all, one)
				}
			}
			if len(all) > 2*int(r.Count) {
				all = soonest(all, int(r.Count))
			}
		}
	}
	return soonest(all, int(r.Count)), ctx.Err()
}

// soonest are the first n to be due, of all virtual hosts.
func soonest(all []ScheduledMessage, n int) []ScheduledMessage {
	slices.SortStableFunc(all, func(a, b ScheduledMessage) int { return cmp.Compare(a.Due, b.Due) })
	return all[:min(len(all), n)]
}

// listDelays lists the messages in a delay queue of RabbitMQ.
func listDelays(c *operate.Call, r ScheduledList, within time.Duration) (all []ScheduledMessage, err error) {
	if r.Exchange == "" {
		return nil, &operate.Invalid{Reason: "name the delay queue (curfew rabbitmq status lists them): curfew scheduled list orders.delay"}
	}
	var before time.Time
	if r.Before != "" {
		before = time.Now().Add(within)
	}
	rows, err := c.Delays.ListDelays(r.Exchange, r.ID, before, int(r.Count))
	for _, m := range rows {
		all = append(all, ScheduledMessage{r.VHost, r.Exchange, m.ID, m.Key, m.DueMillis, nil, m.To, m.Known})
	}
	return all, err
}

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
	exchange := operate.ExchangeNamed(q.Exchange)
	key := c.VHost.ScheduledKey(exchange, c.Actor.Name, q.ID) // the message's own: topic permissions are about it
	p := c.Rights.NewPublisher(c.VHost)
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
