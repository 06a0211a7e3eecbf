package management

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/queue"
)

var deadlineRoutes = []route{
	{method: get, path: "/api/curfew/deadlines", need: management, handle: (*request).listDeadlines},
	{method: get, path: "/api/curfew/deadlines/{vhost}", need: management, handle: (*request).listDeadlines},
	{method: get, path: "/api/curfew/deadlines/{vhost}/{queue}", need: management, handle: (*request).listDeadlines},
	{method: post, path: "/api/curfew/deadlines/{vhost}/{queue}/{seq}", need: management, handle: (*request).changeDeadline},
	{method: post, path: "/api/curfew/locks/{vhost}/{queue}/{token}", need: management, handle: (*request).renewLock},
}

// farMillis is beyond any deadline, and can be counted with.
const farMillis = 1 << 50

// duesShown is how many deadlines are listed unless asked for others.
const duesShown = 20

// dueIn is a deadline and its queue.
type dueIn struct {
	broker.Due
	queue *broker.Queue
}

// dues holds the earliest deadlines, the latest of them at its front (container/heap).
type dues []dueIn

func (d dues) Len() int           { return len(d) }
func (d dues) Less(i, j int) bool { return d[i].Ref.Deadline > d[j].Ref.Deadline }
func (d dues) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dues) Push(x any)        { *d = append(*d, x.(dueIn)) }
func (d *dues) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

// keep adds one if it is among the most earliest.
func (d *dues) keep(one dueIn, most int) {
	if len(*d) < most {
		heap.Push(d, one)
	} else if one.Ref.Deadline < (*d)[0].Ref.Deadline {
		(*d)[0] = one
		heap.Fix(d, 0)
	}
}

// listDeadlines shows the next deadlines of messages in queues that the user may read:
// ?count= of them, those up to ?before= (Unix ms), with ?overdue=true those that have
// come. It looks at every queued message.
func (q *request) listDeadlines() error {
	query := q.URL.Query()
	count, err := strconv.Atoi(query.Get("count"))
	if err != nil || count < 1 || count > maxFound {
		count = duesShown
	}
	before, err := strconv.ParseInt(query.Get("before"), 10, 64)
	if query.Get("before") != "" && err != nil {
		return bad([]any{"not_integer", "before"})
	}
	if before = q.api.b.Instant(min(max(before, -farMillis), farMillis)); q.flag("overdue") { // µs
		before = q.api.b.Now()
	}
	queues, err := q.queuesToRead()
	if err != nil {
		return err
	}
	q.takeTime()
	var next dues
	total := 0
	for _, from := range queues {
		from.EachDue(func(d broker.Due) {
			if before == 0 || d.Ref.Deadline <= before {
				total++
				next.keep(dueIn{d, from}, count)
			}
		})
	}
	slices.SortFunc(next, func(a, b dueIn) int { return int(min(max(a.Ref.Deadline-b.Ref.Deadline, -1), 1)) })
	return q.answer(object{"items": q.dueObjects(next), "total": total})
}

// queuesToRead are the one the path names, or all that the user may read.
func (q *request) queuesToRead() (list []*broker.Queue, err error) {
	if q.param("queue") != "" {
		_, one, err := q.queueToRead()
		return []*broker.Queue{one}, err
	}
	for _, vh := range q.vhosts() {
		for _, one := range vh.Queues() {
			if q.user.is(monitor) || q.rights(vh).Queue(access.Read, one.Name()) == nil {
				list = append(list, one)
			}
		}
	}
	return list, nil
}

func (q *request) dueObjects(list dues) []object {
	items := []object{}
	for i := range list {
		d := &list[i]
		x, ok := d.queue.Look(queue.Seq(d.Ref.Seq), 0)
		if !ok { // it left meanwhile
			continue
		}
		o := dueObject(d.queue, &x)
		o["overdue"] = q.api.b.Now() >= d.Ref.Deadline
		items = append(items, o)
	}
	return items
}

func dueObject(from *broker.Queue, x *broker.Browsed) object {
	p, _ := x.Decode() // one that is unreadable shows none
	return object{
		"vhost": from.VHost().Name(), "queue": from.Name(), "seq": uint64(x.Seq), "deadline": from.VHost().Broker().UnixMillis(x.Deadline), "state": x.State.String(),
		"message_id": p.MessageID, "exchange": string(x.Message.Exchange), "routing_key": string(x.Message.RoutingKey), "payload_bytes": x.BodyBytes,
	}
}

// deadlineChange is what is to become of a message's deadline: one of these.
type deadlineChange struct {
	By     int64 `json:"by_millis"` // later; negative: earlier
	At     int64 `json:"at"`        // Unix ms
	Cancel bool  `json:"cancel"`
	Fire   bool  `json:"fire"`
	Drop   bool  `json:"drop"` // with Fire: not dead-lettered
}

// changeDeadline changes the deadline of one message, by its number in the queue. It
// takes the permissions to read and to write the queue. The answer says what came of it:
// rescheduled, expired, or held by a consumer, with whom it stays until it comes back.
func (q *request) changeDeadline() error {
	var c deadlineChange
	decoder := json.NewDecoder(q.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return bad(err.Error())
	}
	vh, from, err := q.queueToRead()
	if err == nil {
		err = q.rights(vh).Queue(access.Write, from.Name())
	}
	if err != nil {
		return err
	}
	seq, err := strconv.ParseUint(q.param("seq"), 10, 64)
	x, ok := broker.Browsed{}, false
	if err == nil {
		x, ok = from.Look(queue.Seq(seq), 0)
	}
	if !ok {
		return &problem{http.StatusNotFound, "not_found", "no message with this number is in the queue any more"}
	}
	answer, err := q.apply(&c, from, &x)
	if err != nil {
		return err
	}
	if err := q.safe(); err != nil {
		return err
	}
	return q.answer(answer)
}

func (q *request) apply(c *deadlineChange, from *broker.Queue, x *broker.Browsed) (object, error) {
	if !q.api.b.Expires() {
		return nil, bad("no message expires here (CURFEW_TTL=off), so there is no deadline to change")
	}
	ref := from.Ref(x)
	if c.Fire {
		return changed(q.api.b.FireNow(ref, c.Drop), 0)
	}
	at := int64(0) // Unix µs of the broker's clock
	switch {
	case c.Cancel:
	case c.At < 0 || max(c.At, c.By) > farMillis || c.By < -farMillis:
		return nil, bad([]any{"out_of_range", "deadline", cmp.Or(c.At, c.By)})
	case c.At != 0:
		at = q.api.b.Instant(c.At)
	case c.By == 0:
		return nil, bad("say by_millis, at, cancel or fire")
	case x.Deadline == 0:
		return nil, bad("the message has no deadline: give it one with at")
	default:
		at = x.Deadline + c.By*1000
	}
	if at < 0 || at > q.api.b.Now()+broker.MaxTTLMillis*1000 {
		return nil, bad([]any{"out_of_range", "deadline", q.api.b.UnixMillis(at)})
	}
	outcome, ref := q.api.b.Reschedule(ref, at)
	return changed(outcome, q.api.b.UnixMillis(ref.Deadline))
}

// changed is what came of it.
func changed(outcome broker.ExpireOutcome, deadlineMillis int64) (object, error) {
	words := map[broker.ExpireOutcome]string{broker.Rescheduled: "rescheduled", broker.Expired: "expired", broker.Held: "held"}
	word, ok := words[outcome]
	if !ok {
		return nil, &problem{http.StatusConflict, "conflict", "the message left or changed meanwhile"}
	}
	return object{"outcome": word, "deadline": deadlineMillis}, nil
}
