package admin

import (
	"context"
	"fmt"
	"time"

	"curfew/broker/operate"
)

// DelayFilter is what to list.
type DelayFilter struct {
	Queue  string `json:"queue" eg:"orders.delay"`
	ID     string `json:"message_id" doc:"Only messages with this message-id."`
	Before string `json:"before" doc:"Only those that are due within this time, such as 1h."`
	Limit  int64  `json:"limit" default:"100" min:"1" max:"10000" doc:"The most rows: 1 to 10000."`
}

// DelayName names a message that waits. All that have the message-id are meant.
type DelayName struct {
	Queue string `json:"queue" eg:"orders.delay"`
	ID    string `json:"message_id" log:"message_id" eg:"order-17"`
}

// DelayChange has a message wait for another time.
type DelayChange struct {
	Queue string `json:"queue" eg:"orders.delay"`
	ID    string `json:"message_id" log:"message_id" eg:"order-17"`
	In    string `json:"in" need:"key" log:"in" doc:"How long from now it waits, such as 10m."`
}

var _ = operate.Group("delays", "List and change the messages that wait in a delay queue of a RabbitMQ")

const delayNoun = "delayed message"

// The operations on delay queues of a RabbitMQ. The Curfew that keeps the queue does them.
var (
	ListDelays = operate.Define(operate.Op{
		Name: "list_delays", Noun: delayNoun, Title: "List the messages that wait in a delay queue", Rule: operate.Rule{Role: operate.Monitor, Looks: true}, NoBroker: true,
		Text: delaysText, Routes: []string{"GET /api/curfew/delays/{queue}"}, Command: "delays ls <queue>",
		Example: "  curfew delays ls orders.delay --before 1h",
	}, func(_ context.Context, c *operate.Call, q DelayFilter) ([]operate.DelayRow, error) {
		var before time.Time
		if q.Before != "" {
			within, err := waitOf("before", q.Before)
			if err != nil {
				return nil, err
			}
			before = time.Now().Add(within)
		}
		d, err := delaysOf(c)
		if err != nil {
			return nil, err
		}
		return d.ListDelays(q.Queue, q.ID, before, int(q.Limit))
	})
	CancelDelay = operate.Define(operate.Op{
		Name: "cancel_delay", Noun: delayNoun, Title: "Cancel a message that waits: it is never delivered", Rule: operate.Rule{Role: operate.Administrator}, NoBroker: true,
		Text: delaysText, Routes: []string{"DELETE /api/curfew/delays/{queue}/{message_id}"}, Command: "delays cancel <queue> <message_id>",
	}, func(_ context.Context, c *operate.Call, q DelayName) (none operate.None, err error) {
		d, err := delaysOf(c)
		if err == nil {
			err = d.CancelDelay(q.Queue, q.ID)
		}
		return none, err
	})
	RescheduleDelay = operate.Define(operate.Op{
		Name: "reschedule_delay", Noun: delayNoun, Title: "Have a message wait for another time", Rule: operate.Rule{Role: operate.Administrator}, NoBroker: true,
		Text: delaysText, Routes: []string{"PUT /api/curfew/delays/{queue}/{message_id}"}, Command: "delays reschedule <queue> <message_id>",
		Example: "  curfew delays reschedule orders.delay order-17 --in 10m",
	}, func(_ context.Context, c *operate.Call, q DelayChange) (none operate.None, err error) {
		in, err := waitOf("in", q.In)
		if err != nil {
			return none, err
		}
		d, err := delaysOf(c)
		if err == nil {
			err = d.Reschedule(q.Queue, q.ID, in)
		}
		return none, err
	})
	DeliverDelay = operate.Define(operate.Op{
		Name: "deliver_delay", Noun: delayNoun, Title: "Deliver a message that waits now", Rule: operate.Rule{Role: operate.Administrator}, NoBroker: true,
		Text: delaysText, Routes: []string{"POST /api/curfew/delays/{queue}/{message_id}/now"}, Command: "delays now <queue> <message_id>",
	}, func(_ context.Context, c *operate.Call, q DelayName) (none operate.None, err error) {
		d, err := delaysOf(c)
		if err == nil {
			err = d.Reschedule(q.Queue, q.ID, 0)
		}
		return none, err
	})
)

const delaysText = "Only beside a RabbitMQ (`CURFEW_PRIMARY_URL`), for a queue with mode `delay`, at the Curfew that keeps it. 404: there is no such queue or message, or it was delivered."

func delaysOf(c *operate.Call) (operate.Delays, error) {
	if c.Delays == nil {
		return nil, operate.ErrNotFound
	}
	return c.Delays, nil
}

func waitOf(field, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, &operate.Invalid{Reason: fmt.Sprintf("%s: %q is invalid: want a time such as 90s, 10m or 2h", field, text)}
	}
	return d, nil
}
