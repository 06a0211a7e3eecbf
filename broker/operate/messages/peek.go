package messages

import (
	"context"
	"fmt"

	"curfew/broker"
	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/broker/queue"
)

// PeekRequest says which messages of a queue to show.
type PeekRequest struct {
	VHost    string `json:"vhost"`
	Queue    string `json:"queue" eg:"orders"`
	Encoding string `json:"encoding" hide:"command" default:"auto" oneof:"auto base64"`
	From     string `json:"from" hide:"command" default:"head" oneof:"head tail"`
	Tail     bool   `json:"tail" doc:"the newest first"`
	State    string `json:"state" oneof:"ready unacked waiting" doc:"ready or unacked (default both)"`
	Offset   int    `json:"offset" min:"0" max:"1099511627776" doc:"how many messages to skip first"`
	Count    int    `json:"count" flag:"count,n" default:"10" min:"1" max:"500" doc:"the most messages: 1 to 500"`
	Truncate int    `json:"truncate" is:"shown" default:"4096" start:"200" min:"0" max:"16777216" doc:"the most bytes of each body; with -o json the whole body unless this is set"`
}

// Peeked is a message with its place.
type Peeked struct {
	deadletters.Queued
	Position   int    `json:"position"`
	Expired    bool   `json:"expired"`
	WaitsUntil *int64 `json:"waits_until,omitempty"` // Unix ms

	Message operate.Message `json:"-"` // for pages
}

// Peek shows messages, and changes nothing.
var Peek = operate.Define(operate.Op{
	Name: operate.Peek, Title: "Show messages of a queue; removes and marks nothing", Rule: operate.Rules[operate.Peek], Quiet: true, Watched: true,
	Routes: []string{"POST /api/queues/{vhost}/{queue}/peek"}, Command: "queue peek <queue>",
}, func(ctx context.Context, c *operate.Call, r PeekRequest) ([]Peeked, error) {
	q, err := c.Queue(r.Queue)
	if err != nil {
		return nil, err
	}
	most := int64(r.Count) * int64(min(r.Truncate, c.Broker.MaxMessageBytes()))
	if most > operate.MaxPeekBytes {
		return nil, &operate.Invalid{Reason: fmt.Sprintf("count times truncate is more than %d", operate.MaxPeekBytes)}
	}
	if err := operate.Take(ctx, min(operate.CopiesOfBody*most, operate.MaxPeekBytes)); err != nil {
		return nil, err
	}
	found, err := q.Messages.Browse(broker.Browse{
		FromTail: r.Tail || r.From == "tail", Offset: r.Offset, Count: r.Count, BodyBytes: r.Truncate,
		State: map[string]queue.State{"ready": queue.Ready, "unacked": queue.Unacked, "waiting": queue.Waiting}[r.State],
	})
	list := make([]Peeked, len(found))
	for i := range found {
		m := &found[i]
		list[i] = Peeked{Queued: QueuedOf(c.Broker, m, r.Encoding), Position: m.Position, Expired: m.Expired, Message: c.Message(q, m)}
		if m.WaitsUntil != 0 {
			list[i].WaitsUntil = new(c.Broker.UnixMillis(m.WaitsUntil))
		}
	}
	return list, err
})
