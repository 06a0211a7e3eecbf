package management

import (
	"strconv"

	"curfew/broker/management/rest"

	"curfew/broker"
	"curfew/broker/operate"
	"curfew/broker/queue"
)

var deadlineRoutes = []route{
	{method: get, path: "/api/curfew/deadlines", op: operate.ListDeadlines, handle: listDeadlines, doc: deadlinesDoc},
	{method: get, path: "/api/curfew/deadlines/{vhost}", op: operate.ListDeadlines, handle: listDeadlines, doc: deadlinesDoc},
	{method: get, path: "/api/curfew/deadlines/{vhost}/{queue}", op: operate.ListDeadlines, handle: listDeadlines, doc: deadlinesDoc},
	{method: post, path: "/api/curfew/deadlines/{vhost}/{queue}/{seq}", op: operate.ChangeDeadline, handle: changeDeadline, doc: changeDeadlineDoc},
	{method: post, path: "/api/curfew/locks/{vhost}/{queue}/{token}", op: operate.RenewLock, handle: renewLock, doc: renewLockDoc},
}

var (
	deadlinesDoc = rest.Doc{ID: "listDeadlines", Summary: "The next deadlines of queued messages, the earliest first", Answer: deadlineList{},
		Text: "The answer also has their number, in all and for each queue. The request examines every message of the queues.",
		Query: []rest.Parameter{
			{Name: "count", Text: "How many to list: 1 to 1000; 20 if it is missing.", Value: int64(0)},
			{Name: "after", Text: "Only deadlines later than this, Unix ms.", Value: int64(0)}, {Name: "before", Text: "Only deadlines up to this, Unix ms.", Value: int64(0)},
			{Name: "overdue", Text: "Only deadlines that have come.", Value: false},
		}}
	changeDeadlineDoc = rest.Doc{ID: "changeDeadline", Summary: "Move, cancel or fire the deadline of one message", Body: deadlineChange{}, Answer: deadlineChanged{},
		Text: "The body has one of `by_millis`, `at`, `cancel` and `fire`. 409: the message's deadline is not `was`."}
	renewLockDoc = rest.Doc{ID: "renewLock", Summary: "Renew the lock of a delivery", Answer: broker.LockAnswer{},
		Text: "The token is the header `x-lock-token` of the delivery. 404: the lock no longer exists."}
)

// defaultDeadlines is how many deadlines are listed if the request names no number.
const defaultDeadlines = 20

// deadlineList is the next deadlines.
type deadlineList struct {
	Items  []queuedDeadline `json:"items"`
	Total  int              `json:"total"`  // how many there are, listed or not
	Queues []queueDeadlines `json:"queues"` // how many there are in each queue, the one with the most first
}

// queuedDeadline is the deadline of one message.
type queuedDeadline struct {
	VHost      string `json:"vhost"`
	Queue      string `json:"queue"`
	QueueID    uint64 `json:"queue_id,string"` // differs if the queue is deleted and declared again
	Seq        uint64 `json:"seq"`             // the message's number in the queue
	Deadline   int64  `json:"deadline"`        // Unix ms
	State      string `json:"state"`           // ready or unacked
	MessageID  string `json:"message_id"`
	Exchange   string `json:"exchange"`    // to which it was published
	RoutingKey string `json:"routing_key"` // with which it was published
	Bytes      int    `json:"payload_bytes"`
	Overdue    bool   `json:"overdue"` // the deadline has come
}

// queueDeadlines is how many deadlines there are in one queue.
type queueDeadlines struct {
	VHost string `json:"vhost"`
	Queue string `json:"queue"`
	Count int    `json:"count"`
	First int64  `json:"first"` // the earliest, Unix ms
}

// listDeadlines lists the next deadlines of queued messages: ?count= of them, later than ?after= and up to ?before= (Unix ms); with
// ?overdue=true only those that have come. The answer has their number, in all and for each queue.
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
	r.TakeTime()
	list, in, err := r.Operations.NextDeadlines(r.Context(), r.Actor, operate.DeadlineList{
		VHost: r.Param("vhost"), Queue: r.Param("queue"), Count: count, After: span["after"], Before: span["before"], Overdue: r.Flag("overdue"),
	})
	if err != nil {
		return err
	}
	answer := deadlineList{Items: []queuedDeadline{}, Queues: []queueDeadlines{}}
	for _, q := range in {
		answer.Total += q.Count
		answer.Queues = append(answer.Queues, queueDeadlines{q.Queue.VHost().Name(), q.Queue.Name(), q.Count, q.First})
	}
	for i := range list {
		m := &list[i].Message
		answer.Items = append(answer.Items, queuedDeadline{
			VHost: list[i].Queue.VHost().Name(), Queue: list[i].Queue.Name(), QueueID: list[i].Queue.ID(), Seq: uint64(m.Seq), Deadline: m.DeadlineMillis, State: m.State.String(),
			MessageID: m.Properties.MessageID, Exchange: string(m.Message.Exchange), RoutingKey: string(m.Message.RoutingKey), Bytes: m.BodyBytes,
			Overdue: list[i].Overdue,
		})
	}
	return r.Answer(answer)
}

// deadlineChange is a change of a message's deadline: one of by_millis, at, cancel and fire.
type deadlineChange struct {
	By     int64  `json:"by_millis"` // ms later; negative: earlier
	At     int64  `json:"at"`        // the new deadline, Unix ms
	Cancel bool   `json:"cancel"`    // the message has no deadline from now on
	Fire   bool   `json:"fire"`      // the deadline comes now
	Drop   bool   `json:"drop"`      // with fire: the message is not dead-lettered
	Was    *int64 `json:"was"`       // nothing is changed unless this is the deadline, Unix ms; 0: there is none
	// QueueID is the one from the list: nothing is changed in a queue that was declared again since then. Absent: any queue of the name.
	QueueID uint64 `json:"queue_id,string"`
}

// deadlineChanged is the result of a change.
type deadlineChanged struct {
	Outcome  string `json:"outcome"`  // rescheduled, expired, or held: a consumer holds the message, which expires if it comes back
	Deadline int64  `json:"deadline"` // Unix ms; 0: none, or the message has left
}

// changeDeadline changes the deadline of one message, by its number in the queue. The outcome is rescheduled, expired, or held: a consumer
// has the message, and keeps it until it settles it.
func changeDeadline(r *request) error {
	var c deadlineChange
	if err := r.ReadJSON(&c); err != nil {
		return err
	}
	seq, err := strconv.ParseUint(r.Param("seq"), 10, 64)
	if err != nil {
		return operate.ErrMessageGone
	}
	done, err := r.Operations.ChangeDeadline(r.Context(), r.Actor, r.QueueNamed(), queue.Seq(seq), operate.DeadlineChange(c))
	if err != nil {
		return err
	}
	return r.Answer(deadlineChanged(done))
}

// renewLock renews the lock of the delivery that came with the x-lock-token in the path.
func renewLock(r *request) error {
	until, err := r.Operations.RenewLock(r.Context(), r.Actor, r.QueueNamed(), r.Param("token"))
	if err != nil {
		return err
	}
	return r.Answer(broker.AnswerOf(until, true))
}
