package messages

import (
	"context"
	"fmt"

	"curfew/broker"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/broker/queue"
)

var _ = operate.Group("retries", "List messages that wait for another try; return one now or cancel it")

// RetryList says which waiting messages of a queue to list.
type RetryList struct {
	VHost string `json:"vhost"`
	Queue string `json:"queue" eg:"emails"`
	Count int    `json:"count" flag:"count,n" default:"100" min:"1" max:"1000" doc:"how many to list at most: 1 to 1000"`
}

// RetryRow is a message that came back and waits until it is ready again.
type RetryRow struct {
	ID         string `json:"id"`                                                         // to return or cancel it by
	Until      int64  `json:"until" is:"instant" until:"IN"`                              // Unix ms
	Tries      int    `json:"tries"`                                                      // deliveries that failed
	Deadline   int64  `json:"deadline" is:"instant" table:"DEADLINE?" until:"EXPIRES-IN"` // Unix ms; 0: none
	MessageID  string `json:"message_id" table:"MESSAGE-ID"`
	Exchange   string `json:"exchange" hide:"table"`
	RoutingKey string `json:"routing_key" hide:"table"`
	Bytes      int    `json:"payload_bytes" hide:"table"`
}

// ListRetries lists the messages of a queue that wait for another try, in the order of the queue.
var ListRetries = operate.Define(operate.Op{
	Name: "list_retries", Title: "List the messages of a queue that wait for another try, in the order of the queue",
	Rule: operate.Rule{Role: operate.Management, Looks: true, Read: operate.UnlessMonitor}, Watched: true,
	Routes: []string{"GET /api/curfew/retries/{vhost}/{queue}"}, Command: "retries list <queue>", Example: "  curfew retries list emails",
}, func(_ context.Context, c *operate.Call, r RetryList) ([]RetryRow, error) {
	q, err := c.Queue(r.Queue)
	if err != nil {
		return nil, err
	}
	found, err := q.Messages.Browse(broker.Browse{Count: r.Count, State: queue.Waiting})
	rows := make([]RetryRow, len(found))
	for i := range found {
		m := c.Message(q, &found[i])
		rows[i] = RetryRow{
			fmt.Sprintf("%d-%d-%d", q.ID, m.Seq, m.Deadline), c.Broker.UnixMillis(m.WaitsUntil), int(m.Failed), m.DeadlineMillis,
			m.Properties.MessageID, string(m.Message.Exchange), string(m.Message.RoutingKey), m.BodyBytes,
		}
	}
	return rows, err
})

// RetryName names a message that waits.
type RetryName struct {
	VHost string `json:"vhost"`
	Queue string `json:"queue" eg:"emails"`
	ID    string `json:"id" log:"id" eg:"3-17-1893456000000000"`
}

var retryRule = operate.Rule{Role: operate.Management, Read: operate.Always, Write: operate.Always}

// ReturnRetry ends the wait of a message. Error: operate.ErrNotWaiting if it does not wait any more.
var ReturnRetry = operate.Define(operate.Op{
	Name: "return_retry", Title: "Return a message now that waits for another try", Rule: retryRule,
	Text: "It is ready, in its place in the queue. 404: it does not wait any more.", Routes: []string{"POST /api/curfew/retries/{vhost}/{queue}/{id}"}, Command: "retries now <queue> <id>",
}, func(ctx context.Context, c *operate.Call, r RetryName) (operate.None, error) {
	return endRetry(ctx, c, r, false)
})

// CancelRetry drops a message that waits. Error: operate.ErrNotWaiting if it does not wait any more.
var CancelRetry = operate.Define(operate.Op{
	Name: "cancel_retry", Title: "Drop a message that waits for another try", Rule: retryRule,
	Text: "It is not dead-lettered. 404: it does not wait any more.", Routes: []string{"DELETE /api/curfew/retries/{vhost}/{queue}/{id}"}, Command: "retries cancel <queue> <id>",
}, func(ctx context.Context, c *operate.Call, r RetryName) (operate.None, error) {
	return endRetry(ctx, c, r, true)
})

func endRetry(ctx context.Context, c *operate.Call, r RetryName, drop bool) (none operate.None, err error) {
	q, err := c.Queue(r.Queue)
	if err != nil {
		return none, err
	}
	var ref deadline.Ref
	if n, _ := fmt.Sscanf(r.ID, "%d-%d-%d", &ref.Queue, &ref.Seq, &ref.Deadline); n != 3 || ref.Queue != q.ID || !q.Messages.EndWait(ref, drop) {
		return none, operate.ErrNotWaiting
	}
	return none, c.Commit(ctx)
}
