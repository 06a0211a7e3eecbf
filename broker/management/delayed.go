package management

import (
	"strconv"

	"curfew/broker/management/rest"

	"curfew/broker/operate"
)

var (
	delayedDoc = rest.Doc{ID: "listDelayed", Summary: "Messages that wait to be enqueued, in the order of publishing", Answer: delayedList{}, Query: []rest.Parameter{
		{Name: "from", Text: "`next` of the previous answer; the first message if it is missing.", Value: ""},
		{Name: "count", Text: "How many to list: 1 to 1000, which is also the default.", Value: int64(0)},
	}}
	cancelDelayedDoc = rest.Doc{ID: "cancelDelayed", Summary: "Drop a message that waits to be enqueued", Text: "404: it was already enqueued or cancelled."}
)

// delayedList is a page of messages that wait to be enqueued.
type delayedList struct {
	Items []delayedMessage `json:"items"`
	Next  string           `json:"next"` // where the next page begins; empty at the end
}

// delayedMessage waits to be enqueued.
type delayedMessage struct {
	ID         string `json:"id"`  // to cancel it by
	Due        int64  `json:"due"` // Unix ms
	Exchange   string `json:"exchange"`
	RoutingKey string `json:"routing_key"`
	Properties object `json:"properties"` // the ones that it has, by RabbitMQ's names
	Bytes      int    `json:"payload_bytes"`
}

// listDelayed lists the messages of a virtual host that wait to be enqueued, in the order of
// publishing: ?count= of them, from the one that ?from= names. RabbitMQ has nothing like it.
func listDelayed(r *request) error {
	query := r.URL.Query()
	from, _ := strconv.ParseUint(query.Get("from"), 10, 64)
	count, err := strconv.Atoi(query.Get("count"))
	if err != nil || count < 1 {
		count = operate.MaxDelayedCount
	}
	page, next, err := r.Operations.ListDelayed(r.Context(), r.Actor, r.Param("vhost"), from, count)
	if err != nil {
		return err
	}
	answer := delayedList{Items: []delayedMessage{}}
	for i := range page {
		m := &page[i]
		answer.Items = append(answer.Items, delayedMessage{m.ID, m.DueMillis, m.Exchange, m.RoutingKey, rest.PropertiesObject(m.Properties), int(m.Bytes)})
	}
	if next != 0 {
		answer.Next = strconv.FormatUint(next, 10)
	}
	return r.Answer(answer)
}

// cancelDelayed drops one of them by its ID; 404 if it was already enqueued or cancelled.
func cancelDelayed(r *request) error {
	return r.Done(r.Operations.CancelDelayed(r.Context(), r.Actor, r.Param("vhost"), r.Param("id")))
}
