package management

import (
	"strconv"

	"curfew/broker/operate"
)

// listDelayed shows the messages of a virtual host that wait to be enqueued, in the
// order of publishing, from the one that ?from= names as next; ?count= of them. The
// answer is {"items": [...], "next": "..."}, next being "" at the end. RabbitMQ has
// nothing like it.
func listDelayed(r *request) error {
	query := r.URL.Query()
	from, _ := strconv.ParseUint(query.Get("from"), 10, 64)
	count, err := strconv.Atoi(query.Get("count"))
	if err != nil || count < 1 {
		count = operate.MaxDelayedCount
	}
	page, next, err := r.api.Operations.ListDelayed(r.Context(), r.Actor, r.Param("vhost"), from, count)
	if err != nil {
		return err
	}
	items := []object{}
	for i := range page {
		m := &page[i]
		items = append(items, object{
			"id": m.ID, "due": m.DueMillis, "exchange": m.Exchange, "routing_key": m.RoutingKey,
			"properties": propertiesObject(m.Properties), "payload_bytes": m.Bytes,
		})
	}
	answer := object{"items": items, "next": ""}
	if next != 0 {
		answer["next"] = strconv.FormatUint(next, 10)
	}
	return r.Answer(answer)
}

// cancelDelayed drops one of them by its id; 404 if it is enqueued or cancelled
// already.
func cancelDelayed(r *request) error {
	if err := r.api.Operations.CancelDelayed(r.Context(), r.Actor, r.Param("vhost"), r.Param("id")); err != nil {
		return err
	}
	return r.Done()
}
