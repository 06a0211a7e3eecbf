package messages

import (
	"context"
	"fmt"
	"strconv"

	"curfew/broker/deadline"
	"curfew/broker/operate"
)

// DelayedList says which delayed messages to list: Count of them from the number that an earlier page had as Next, 0 for the first.
type DelayedList struct {
	VHost string `json:"vhost"`
	From  uint64 `json:"from" doc:"next of the previous answer; the first message if it is missing"`
	Count int    `json:"count" flag:"count,n" default:"1000" min:"1" max:"1000" doc:"how many to list at most: 1 to 1000"`
}

// DelayedMessage waits to be enqueued.
type DelayedMessage struct {
	ID         string         `json:"id"`                          // to cancel it by
	Due        int64          `json:"due" is:"instant" until:"IN"` // Unix ms by the wall clock
	Exchange   string         `json:"exchange"`
	RoutingKey string         `json:"routing_key" table:"KEY"`
	MessageID  string         `json:"message_id" table:"MESSAGE-ID"`
	User       string         `json:"user" table:"USER?"`      // who published it; empty: that was not noted, as for one without a message-id
	Properties map[string]any `json:"properties" hide:"table"` // the ones that it has, by RabbitMQ's names
	Bytes      int            `json:"payload_bytes" table:"BYTES?"`
}

// DelayedPage is a page of delayed messages.
type DelayedPage struct {
	Items []DelayedMessage `json:"items"`
	Next  string           `json:"next"` // where the next page begins; empty at the end
}

// Words implements Effect.
func (p DelayedPage) Words() (sentences []string, harm, more bool) {
	if p.Next != "" {
		sentences = append(sentences, "there are more: --from "+p.Next)
	}
	return sentences, false, false
}

// ListDelayed lists the delayed messages of a virtual host in the order of publishing.
var ListDelayed = operate.Define(operate.Op{
	Name: "list_delayed", Title: "List the delayed messages of all users in the virtual host, also those without a message-id, in the order of publishing", Rule: operate.Rule{Role: operate.Administrator, Looks: true}, Watched: true,
	Routes: []string{"GET /api/curfew/delayed/{vhost}"}, Command: "scheduled list", Variant: "all",
}, func(_ context.Context, c *operate.Call, r DelayedList) (page DelayedPage, err error) {
	list, next := c.VHost.Delayed(r.From, r.Count)
	page.Items = make([]DelayedMessage, len(list))
	for i := range list {
		m := &list[i]
		page.Items[i] = DelayedMessage{
			fmt.Sprintf("%d-%d-%d", m.Ref.Queue, m.Ref.Seq, m.Ref.Deadline), c.Broker.UnixMillis(m.Ref.Deadline), m.Exchange, m.RoutingKey, m.ID, m.User, PropertiesOf(m.Properties), int(m.Bytes),
		}
	}
	if next != 0 {
		page.Next = strconv.FormatUint(next, 10)
	}
	return page, nil
})

// DelayedName names a delayed message.
type DelayedName struct {
	VHost string `json:"vhost"`
	ID    string `json:"id" log:"id" eg:"3-17-1893456000000000000"`
}

// CancelDelayed drops a delayed message by its ID. Error: operate.ErrNotFound if it was enqueued or cancelled before.
var CancelDelayed = operate.Define(operate.Op{
	Name: "cancel_delayed", Title: "Drop a delayed message by its id", Rule: operate.Rule{Role: operate.Administrator},
	Text: "404: it was already enqueued or cancelled.", Routes: []string{"DELETE /api/curfew/delayed/{vhost}/{id}"},
	Noun: "delayed message",
}, func(ctx context.Context, c *operate.Call, r DelayedName) (none operate.None, err error) {
	return none, cancelDelayed(ctx, c, r.ID)
})

// cancelDelayed drops a delayed message by its ID.
func cancelDelayed(ctx context.Context, c *operate.Call, id string) error {
	var ref deadline.Ref
	if n, _ := fmt.Sscanf(id, "%d-%d-%d", &ref.Queue, &ref.Seq, &ref.Deadline); n != 3 || !c.VHost.CancelDelayed(ref) {
		return operate.ErrNotFound
	}
	return c.Commit(ctx)
}
