package messages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

var _ = operate.Group("deadlines", "List the next deadlines of a running Curfew; extend, shorten, cancel or fire one")

const listDeadlines operate.Operation = "list_deadlines"

// farMillis is beyond any deadline, and sums with it do not overflow.
const farMillis = 1 << 50

// DeadlineList says which deadlines to list: of all queues that the actor may see, of a virtual host or of a queue.
type DeadlineList struct {
	VHost   string `json:"vhost"`
	Queue   string `json:"queue" eg:"orders"`
	Count   int    `json:"count" flag:"count,n" default:"20" min:"1" max:"1000" doc:"how many to list at most: 1 to 1000"`
	After   int64  `json:"after" hide:"command" doc:"Only deadlines later than this, Unix ms."`
	Before  int64  `json:"before" hide:"command" doc:"Only deadlines up to this, Unix ms."`
	Overdue bool   `json:"overdue" doc:"only deadlines that have passed: a consumer holds the message, or it has not expired yet"`
}

// Deadline is the deadline of a queued message.
type Deadline struct {
	VHost      string `json:"vhost" hide:"table"`
	Queue      string `json:"queue"`
	QueueID    uint64 `json:"queue_id,string" hide:"table"`                       // differs if the queue is deleted and declared again
	Seq        uint64 `json:"seq"`                                                // the message's number in the queue
	Deadline   int64  `json:"deadline" is:"instant" table:"DEADLINE?" until:"IN"` // Unix ms
	State      string `json:"state"`                                              // ready or unacked
	MessageID  string `json:"message_id" table:"MESSAGE-ID"`
	Exchange   string `json:"exchange" hide:"table"`    // to which it was published
	RoutingKey string `json:"routing_key" hide:"table"` // with which it was published
	Bytes      int    `json:"payload_bytes" hide:"table"`
	Overdue    bool   `json:"overdue" hide:"table"` // the deadline has come
}

// QueueDeadlines is how many of the requested deadlines are in a queue.
type QueueDeadlines struct {
	VHost string `json:"vhost"`
	Queue string `json:"queue"`
	Count int    `json:"count"`
	First int64  `json:"first"` // the earliest, Unix ms
}

// DeadlinePage is the next deadlines, the earliest first.
type DeadlinePage struct {
	Items  []Deadline       `json:"items"`
	Total  int              `json:"total"`  // how many there are, listed or not
	Queues []QueueDeadlines `json:"queues"` // how many there are in each queue that has any, the one with the most first
}

// Words implements Effect.
func (p DeadlinePage) Words() (sentences []string, harm, more bool) {
	if more := p.Total - len(p.Items); more > 0 {
		sentences = append(sentences, fmt.Sprintf("and %d later (--count)", more))
	}
	return sentences, false, false
}

// ListDeadlines lists the next deadlines of queued messages. It examines every message of the queues.
var ListDeadlines = operate.Define(operate.Op{
	Name: listDeadlines, Title: "List the next deadlines, of one queue or of all", Rule: operate.Rule{Role: operate.Management, Looks: true, Read: operate.UnlessMonitor}, Watched: true, Slow: true,
	Text:   "The answer also has their number, in all and for each queue. The request examines every message of the queues.",
	Routes: []string{"GET /api/curfew/deadlines/{vhost}/{queue}", "GET /api/curfew/deadlines/{vhost}", "GET /api/curfew/deadlines"}, Command: "deadlines list [queue]",
}, func(ctx context.Context, c *operate.Call, r DeadlineList) (page DeadlinePage, err error) {
	queues, err := queuesWithDeadlines(c, &r)
	if err != nil {
		return page, err
	}
	after, before := instant(c.Broker, r.After), instant(c.Broker, r.Before)
	if r.Overdue {
		before = c.Broker.Now()
	}
	var next []due
	page = DeadlinePage{Items: []Deadline{}, Queues: []QueueDeadlines{}}
	for _, from := range queues {
		if err := ctx.Err(); err != nil { // the client has gone
			return page, err
		}
		one := QueueDeadlines{VHost: from.VHost().Name(), Queue: from.Name}
		first := deadline.Instant(0)
		from.Messages.EachDue(func(d deadline.Ref) {
			if (before == 0 || d.Deadline <= before) && (after == 0 || d.Deadline > after) {
				if one.Count++; first == 0 || d.Deadline < first {
					first = d.Deadline
				}
				if next = append(next, due{d, from}); len(next) >= sortedAt+2*r.Count {
					next = earliest(next, r.Count)
				}
			}
		})
		if page.Total += one.Count; one.Count > 0 {
			one.First = c.Broker.UnixMillis(first)
			page.Queues = append(page.Queues, one)
		}
	}
	slices.SortFunc(page.Queues, func(a, b QueueDeadlines) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Queue, b.Queue)) })
	next = earliest(next, r.Count)
	for i := range next {
		if x, ok := next[i].queue.Messages.BrowseOne(queue.Seq(next[i].Seq), 0); ok { // otherwise it has left
			page.Items = append(page.Items, deadlineOf(c, next[i].queue, &x, c.Broker.Now() >= next[i].Deadline))
		}
	}
	return page, nil
})

func deadlineOf(c *operate.Call, q *broker.Queue, x *broker.Browsed, overdue bool) Deadline {
	m := c.Message(q, x)
	return Deadline{
		q.VHost().Name(), q.Name, q.ID, uint64(m.Seq), m.DeadlineMillis, m.State.String(), m.Properties.MessageID, string(m.Message.Exchange), string(m.Message.RoutingKey),
		m.BodyBytes, overdue,
	}
}

// instant converts Unix ms to an instant of the broker's clock; 0 stays 0, which means none.
func instant(b *broker.Broker, millis int64) deadline.Instant {
	if millis == 0 {
		return 0
	}
	return b.Instant(min(max(millis, -farMillis), farMillis))
}

// queuesWithDeadlines returns the queue that is named, or all that the actor may see.
func queuesWithDeadlines(c *operate.Call, r *DeadlineList) (list []*broker.Queue, err error) {
	if r.Queue != "" {
		q, err := c.Queue(r.Queue)
		return []*broker.Queue{q}, err
	}
	for _, vh := range c.Within() {
		list = append(list, slices.DeleteFunc(vh.Queues.List(), func(q *broker.Queue) bool {
			return c.MayOn(&c.Actor, listDeadlines, vh, q.Name) != nil
		})...)
	}
	return list, nil
}

// sortedAt is how many deadlines are sorted at a time, besides twice those that are wanted.
const sortedAt = 1000

// due is a deadline and its queue.
type due struct {
	deadline.Ref
	queue *broker.Queue
}

// earliest sorts deadlines, and keeps the first of them.
func earliest(all []due, most int) []due {
	slices.SortFunc(all, func(a, b due) int { return cmp.Compare(a.Deadline, b.Deadline) })
	return all[:min(len(all), most)]
}

// DeadlineChange is a change of a message's deadline: one of By, At, Cancel and Fire. The message is named by Seq or by MessageID.
type DeadlineChange struct {
	VHost     string    `json:"vhost"`
	Queue     string    `json:"queue" form:"name" eg:"orders"`
	Seq       queue.Seq `json:"seq" seen:"" eg:"17" doc:"the message's number in the queue"`
	MessageID string    `json:"message_id" hide:"page" doc:"instead of the number: the ready message with this message-id; it has to be the only one"`
	By        int64     `json:"by_millis" form:"by" flag:"by" label:"More time" is:"span" help:"by how much, such as 90s or 10m" doc:"by how much, in ms, or as 90s or 10m; negative: earlier"`
	Earlier   bool      `json:"earlier" hide:"command" label:"less time, not more" doc:"by_millis is how much earlier"`
	At        int64     `json:"at" is:"instant" label:"Another deadline (UTC)" help:"the new deadline, an instant such as 2006-01-02T15:04:05Z" doc:"instead: the new deadline; in JSON, Unix ms"`
	Cancel    bool      `json:"cancel" hide:"command" label:"no deadline" doc:"the message has no deadline from now on"`
	Fire      bool      `json:"fire" log:"fired" hide:"command" label:"expire it now" doc:"the deadline comes now"`
	Drop      bool      `json:"drop" log:"dropped" label:"and drop it, even if its queue dead-letters" doc:"with fire: the message is dropped, even if its queue has a dead-letter exchange"`
	Was       *int64    `json:"was" form:"deadline" seen:"" hide:"command" doc:"nothing is changed unless this is the deadline, Unix ms; 0: there is none"`
	// QueueID is the incarnation of the queue that somebody saw: in a different one, the number belongs to a different message. 0: any.
	QueueID uint64 `json:"queue_id" form:"queue" is:"text" seen:"" hide:"command" doc:"the one from the list: nothing is changed in a queue that was declared again since then; none: any queue of the name"`
	DryRun  bool   `json:"dry_run" own:"" hide:"command" doc:"change nothing"`
}

// Check implements operate.Checker.
func (r DeadlineChange) Check() error {
	wanted := 0
	for _, given := range []bool{r.By != 0, r.At != 0, r.Cancel, r.Fire} {
		if given {
			wanted++
		}
	}
	switch {
	case r.Seq == 0 && r.MessageID == "":
		return &operate.Invalid{Reason: "name the message: by its number (curfew deadlines list) or by its message-id"}
	case wanted == 0:
		return &operate.Invalid{Reason: "say by how much, at which instant, cancel or fire"}
	case wanted > 1:
		return &operate.Invalid{Reason: "say either by how much or at which instant, cancel or fire, not both"}
	case r.Earlier && r.By < 0:
		return &operate.Invalid{Reason: "by_millis is negative already: leave earlier out"}
	}
	return nil
}

// DeadlineChanged is the result of a change.
type DeadlineChanged struct {
	Outcome  string `json:"outcome"`               // rescheduled, expired, or held: a consumer holds the message, which expires if it comes back; empty: of a dry run
	Deadline int64  `json:"deadline" is:"instant"` // Unix ms; 0: none, or the message has left
	says     []string
	harm     bool // of a dry run: the message would expire
}

// Words implements operate.Effect.
func (d DeadlineChanged) Words() (sentences []string, harm, more bool) { return d.says, d.harm, false }

// plan is what a dry run would have changed: the message gets the deadline to, on the broker's clock.
func (r *DeadlineChange) plan(b *broker.Broker, to deadline.Instant, held bool) (d DeadlineChanged) {
	d.Deadline, d.harm = b.UnixMillis(to), r.Fire || to != 0 && to <= b.Now()
	says := "The message gets the deadline " + time.UnixMilli(d.Deadline).UTC().Format("2006-01-02 15:04:05.000 UTC") + "."
	switch {
	case r.Fire && r.Drop:
		says = "The message is dropped now."
	case r.Fire:
		says = "The message expires now."
	case to == 0:
		says = "The message has no deadline then: it stays until it is consumed."
	case d.harm:
		says = "This deadline has passed: the message expires at once."
	}
	if d.says = []string{says}; held {
		d.says = append(d.says, "A consumer holds it: it stays with the consumer, and expires if it comes back after the deadline.")
	}
	return d
}

var outcomes = map[deadline.Outcome]string{deadline.Rescheduled: "rescheduled", deadline.Expired: "expired", deadline.Held: "held"}

// ChangeDeadline changes the deadline of one message by its number. Errors: operate.ErrMessageGone, operate.ErrChanged, *operate.Wrong or *operate.Invalid among others.
var ChangeDeadline = operate.Define(operate.Op{
	Name: "change_deadline", Title: "Move, cancel or fire the deadline of one message", Rule: operate.Rule{Role: operate.Management, Read: operate.Always, Write: operate.Always},
	Text:   "The body has one of `by_millis`, `at`, `cancel` and `fire`. 409: the message's deadline is not `was`.",
	Routes: []string{"POST /api/curfew/deadlines/{vhost}/{queue}/{seq}", "POST /api/curfew/deadlines/{vhost}/{queue}"},
	Also: []operate.Way{
		{Command: "deadlines extend <queue> [seq]", Title: "Give a message more time, by its number in the queue or by --message-id", Flags: []string{"message_id", "by_millis", "at"}},
		{Command: "deadlines shorten <queue> [seq]", Title: "Give a message less time, by its number in the queue or by --message-id", Flags: []string{"message_id", "by_millis", "at"}, Sets: map[string]any{"earlier": true}},
		{Command: "deadlines cancel <queue> [seq]", Title: "Remove a message's deadline, by its number in the queue or by --message-id; the message then stays until it is consumed", Flags: []string{"message_id"}, Sets: map[string]any{"cancel": true}},
		{Command: "deadlines fire <queue> [seq]", Title: "Make a message expire now, by its number in the queue or by --message-id", Flags: []string{"message_id", "drop"}, Sets: map[string]any{"fire": true}},
	},
	Page: operate.Page{On: "/deadline", Title: "A message's deadline", Tab: "/queues", Parent: "/queue", Rows: "look_at_message", About: true, DryRun: true, Button: "Change the deadline",
		Next: "/queue?vhost={vhost}&name={name}&changed={outcome}"},
}, func(ctx context.Context, c *operate.Call, r DeadlineChange) (done DeadlineChanged, err error) {
	q, err := c.Queue(r.Queue)
	if err == nil && r.QueueID != 0 && r.QueueID != q.ID {
		err = operate.ErrMessageGone
	}
	was := int64(0)
	if err == nil && r.Seq == 0 {
		r.Seq, err = withID(ctx, q, r.MessageID)
		c.Log(zap.String("message_id", r.MessageID))
	}
	c.Log(zap.Uint64("seq", uint64(r.Seq)))
	if r.Earlier {
		r.By = -r.By
	}
	if err == nil {
		done, was, err = changeDeadline(c.Broker, q, &r)
	}
	if err == nil && !r.DryRun {
		err = c.Commit(ctx, q)
	}
	c.Log(zap.String("outcome", done.Outcome))
	c.Log(zap.Int64("from", was))
	c.Log(zap.Int64("to", done.Deadline))
	return done, err
})

// withID is the number of the only ready message of a queue that has a message-id.
func withID(ctx context.Context, q *broker.Queue, id string) (queue.Seq, error) {
	filter := deadletters.Equals("message_id", id)
	found, _, err := deadletters.Search(ctx, q, filter, deadletters.Look{Count: 2})
	switch {
	case err != nil:
		return 0, err
	case len(found) == 0:
		return 0, &operate.Missing{Reason: fmt.Sprintf("no ready message in %q has message-id %q", q.Name, id)}
	case len(found) > 1:
		return 0, &operate.Invalid{Reason: fmt.Sprintf("several messages in %q have message-id %q; name one by its number (curfew dlq search %s%s --filter %s)", q.Name, id, deadline.Shell(q.Name), deadletters.Flag(q.VHost().Name()), deadline.Shell(string(filter)))}
	}
	return found[0].Seq, nil
}

func changeDeadline(b *broker.Broker, q *broker.Queue, c *DeadlineChange) (done DeadlineChanged, was int64, err error) {
	x, ok := q.Messages.BrowseOne(c.Seq, 0)
	if !ok {
		return done, 0, operate.ErrMessageGone
	}
	if was = b.UnixMillis(x.Deadline); c.Was != nil && *c.Was != was {
		return done, was, operate.ErrChanged
	}
	if !b.Expires() {
		return done, was, &operate.Invalid{Reason: "no message expires here (CURFEW_TTL=off), so there is no deadline to change"}
	}
	to, err := newDeadline(b, c, x.Deadline)
	if err != nil {
		return done, was, err
	}
	if c.DryRun {
		return c.plan(b, to, x.State == queue.Unacked), was, nil
	}
	var outcome deadline.Outcome
	ref := q.Messages.Ref(&x)
	if c.Fire {
		outcome, ref.Deadline = b.FireNow(ref, c.Drop), 0
	} else {
		outcome, ref = b.Reschedule(ref, to)
	}
	if outcomes[outcome] == "" {
		return done, was, operate.ErrChanged
	}
	return DeadlineChanged{Outcome: outcomes[outcome], Deadline: b.UnixMillis(ref.Deadline)}, was, nil
}

// newDeadline returns the changed deadline. Both deadlines are on the broker's clock, 0 for none.
func newDeadline(b *broker.Broker, c *DeadlineChange, was deadline.Instant) (to deadline.Instant, err error) {
	switch {
	case c.Cancel, c.Fire:
		return 0, nil
	case c.At < 0 || max(c.At, c.By) > farMillis || c.By < -farMillis:
		return 0, operate.OutOfRange("deadline", cmp.Or(c.At, c.By))
	case c.At != 0:
		to = b.Instant(c.At)
	case was == 0:
		return 0, &operate.Invalid{Reason: "the message has no deadline: give it one with at"}
	default:
		to = was.AddMillis(deadline.Millis(c.By))
	}
	if c.Earlier {
		to = max(to, 1) // it has passed however much earlier it is
	}
	if to < 0 || to > b.Now().AddMillis(policy.MaxTTLMillis) {
		return 0, operate.OutOfRange("deadline", b.UnixMillis(to))
	}
	return to, nil
}

// LockToken names the lock of a delivery.
type LockToken struct {
	VHost string `json:"vhost"`
	Queue string `json:"queue"`
	Token string `json:"token"`
}

// RenewLock renews the lock of the delivery that came with a token (Service Bus: Renew-Lock for a Message). Error: operate.ErrNoLock among others.
var RenewLock = operate.Define(operate.Op{
	Name: "renew_lock", Title: "Renew the lock of a delivery", Rule: operate.Rule{Role: operate.Management, Read: operate.Always}, Routes: []string{"POST /api/curfew/locks/{vhost}/{queue}/{token}"},
	Text: "The token is the header `x-lock-token` of the delivery. 404: the lock no longer exists.",
}, func(_ context.Context, c *operate.Call, r LockToken) (answer broker.LockAnswer, err error) {
	q, err := c.Queue(r.Queue)
	if err != nil {
		return answer, err
	}
	until, ok := q.Messages.Locks.Renew(r.Token)
	if !ok {
		return answer, operate.ErrNoLock
	}
	return broker.AnswerOf(until, true), nil
})
