package management

import (
	"fmt"
	"strconv"

	"curfew/broker"
)

// delayedPage is how many delayed messages are listed at most at a time.
const delayedPage = 1000

// listDelayed shows the messages of a virtual host that wait to be enqueued, in the
// order of publishing, from the one that ?from= names as next; ?count= of them. The
// answer is {"items": [...], "next": "..."}, next being "" at the end. RabbitMQ has
// nothing like it.
func (q *request) listDelayed() error {
	vh, err := q.vhost()
	if err != nil {
		return err
	}
	query := q.URL.Query()
	from, _ := strconv.ParseUint(query.Get("from"), 10, 64)
	count, err := strconv.Atoi(query.Get("count"))
	if err != nil || count < 1 || count > delayedPage {
		count = delayedPage
	}
	page, next := vh.Delayed(from, count)
	items := []object{}
	for i := range page {
		m := &page[i]
		items = append(items, object{
			"id": delayedID(m.Ref), "due": q.api.b.UnixMillis(m.Ref.Deadline), "exchange": m.Exchange, "routing_key": m.RoutingKey,
			"properties": propertiesObject(m.Properties), "payload_bytes": m.Bytes,
		})
	}
	answer := object{"items": items, "next": ""}
	if next != 0 {
		answer["next"] = strconv.FormatUint(next, 10)
	}
	return q.answer(answer)
}

// cancelDelayed drops one of them by its id; 404 if it is enqueued or cancelled
// already.
func (q *request) cancelDelayed() error {
	vh, err := q.vhost()
	if err != nil {
		return err
	}
	var ref broker.MessageRef
	if n, _ := fmt.Sscanf(q.param("id"), "%d-%d-%d", &ref.Queue, &ref.Seq, &ref.Deadline); n != 3 || !vh.CancelDelayed(ref) {
		return errNotFound
	}
	return q.done()
}

// delayedID names a delayed message in paths.
func delayedID(ref broker.MessageRef) string {
	return fmt.Sprintf("%d-%d-%d", ref.Queue, ref.Seq, ref.Deadline)
}
