package management

import (
	"encoding/json"
	"strconv"

	"curfew/broker/management/rest"

	"curfew/broker"
	"curfew/broker/operate"
	"curfew/broker/queue"
)

var deadlineRoutes = []route{
	{method: get, path: "/api/curfew/deadlines", op: operate.ListDeadlines, handle: listDeadlines},
	{method: get, path: "/api/curfew/deadlines/{vhost}", op: operate.ListDeadlines, handle: listDeadlines},
	{method: get, path: "/api/curfew/deadlines/{vhost}/{queue}", op: operate.ListDeadlines, handle: listDeadlines},
	{method: post, path: "/api/curfew/deadlines/{vhost}/{queue}/{seq}", op: operate.ChangeDeadline, handle: changeDeadline},
	{method: post, path: "/api/curfew/locks/{vhost}/{queue}/{token}", op: operate.RenewLock, handle: renewLock},
}

// defaultDeadlines is how many deadlines are listed unless another number is asked for.
const defaultDeadlines = 20

// listDeadlines shows the next deadlines of queued messages: ?count= of them, those later than ?after= and up to ?before= (Unix ms), with
// ?overdue=true those that have come. The answer says how many there are in all, and in each queue.
func listDeadlines(r *request) error {
	query := r.URL.Query()
	count, err := strconv.Atoi(query.Get("count"))
	if err != nil || count < 1 || count > operate.MaxSearchCount {
		count = defaultDeadlines
	}
	span := map[string]int64{}
	for _, name := range []string{"after", "before"} {
		if span[name], err = strconv.ParseInt(query.Get(name), 10, 64); query.Get(name) != "" && err != nil {
			return rest.Bad([]any{"not_integer", name})
		}
	}
	r.takeTime()
	list, in, err := r.api.Operations.NextDeadlines(r.Context(), r.Actor, operate.DeadlineList{
		VHost: r.Param("vhost"), Queue: r.Param("queue"), Count: count, After: span["after"], Before: span["before"], Overdue: r.Flag("overdue"),
	})
	if err != nil {
		return err
	}
	total, queues := 0, []object{}
	for _, q := range in {
		total += q.Count
		queues = append(queues, object{"vhost": q.Queue.VHost().Name(), "queue": q.Queue.Name(), "count": q.Count, "first": q.First})
	}
	items := []object{}
	for i := range list {
		m := &list[i].Message
		items = append(items, object{
			"vhost": list[i].Queue.VHost().Name(), "queue": list[i].Queue.Name(), "queue_id": strconv.FormatUint(list[i].Queue.ID(), 10), "seq": uint64(m.Seq), "deadline": m.DeadlineMillis, "state": m.State.String(),
			"message_id": m.Properties.MessageID, "exchange": string(m.Message.Exchange), "routing_key": string(m.Message.RoutingKey), "payload_bytes": m.BodyBytes,
			"overdue": list[i].Overdue,
		})
	}
	return r.Answer(object{"items": items, "total": total, "queues": queues})
}

// deadlineChange is what is to become of a message's deadline: one of by_millis, at, cancel and fire.
type deadlineChange struct {
	By     int64  `json:"by_millis"` // later; negative: earlier
	At     int64  `json:"at"`        // Unix ms
	Cancel bool   `json:"cancel"`
	Fire   bool   `json:"fire"`
	Drop   bool   `json:"drop"` // with fire: not dead-lettered
	Was    *int64 `json:"was"`  // Unix ms: nothing is changed unless this is the deadline
	// QueueID is that of the list: nothing is changed in a queue that was declared again since. Absent: any of the name.
	QueueID uint64 `json:"queue_id,string"`
}

// changeDeadline changes the deadline of one message, by its number in the queue. The answer says what came of it: rescheduled, expired, or
// held by a consumer, with whom it stays until it comes back.
func changeDeadline(r *request) error {
	var c deadlineChange
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return rest.Bad(err.Error())
	}
	seq, err := strconv.ParseUint(r.Param("seq"), 10, 64)
	if err != nil {
		return operate.ErrMessageGone
	}
	done, err := r.api.Operations.ChangeDeadline(r.Context(), r.Actor, r.queueNamed(), queue.Seq(seq), operate.DeadlineChange(c))
	if err != nil {
		return err
	}
	return r.Answer(object{"outcome": done.Outcome, "deadline": done.Deadline})
}

// renewLock renews the lock of the delivery that came with the x-lock-token in the path.
func renewLock(r *request) error {
	until, err := r.api.Operations.RenewLock(r.Context(), r.Actor, r.queueNamed(), r.Param("token"))
	if err != nil {
		return err
	}
	return r.Answer(broker.AnswerOf(until, true))
}
