package operate

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

const (
	listDeadLetterQueues Operation = "list_dead_letter_queues"
	startReplay          Operation = "start_replay"
)

var _ = Group("dlq", "List, search, replay, edit, purge, export and import dead letters of a running Curfew")

// VHostFilter is a virtual host; "" is any.
type VHostFilter struct {
	VHost string `json:"vhost"`
}

// ListDeadLetterQueues lists the queues that keep dead letters, and others that have some now, the fullest first, as they were within the last second.
// The caller must not change the result.
var ListDeadLetterQueues = Define(Op{
	Name: listDeadLetterQueues, Title: "List the queues that keep dead letters, and others that have some now, the fullest first", Rule: Rule{Role: Management, Looks: true, Read: UnlessMonitor}, Watched: true,
	Routes: []string{"GET /api/curfew/deadletters/{vhost}", "GET /api/curfew/deadletters"}, Command: "dlq list",
}, func(_ context.Context, o *Call, _ VHostFilter) ([]*deadletters.Queue, error) {
	all := o.deadLetterQueues.get(&o.epoch, 100*time.Microsecond, func() (all []deadletters.Queue, n int) {
		for _, vh := range o.Broker.VHosts() {
			all = append(all, deadletters.Queues(vh, o.Purpose)...)
			n += len(vh.Queues.List())
		}
		slices.SortStableFunc(all, func(a, b deadletters.Queue) int { return cmp.Compare(b.Ready+b.Unacked, a.Ready+a.Unacked) })
		return all, n
	})
	vhosts, list := map[string]*broker.VHost{}, []*deadletters.Queue{}
	for _, vh := range o.Within() {
		vhosts[vh.Name()] = vh
	}
	for i := range all {
		q := &all[i]
		passing := q.Ready+q.Unacked == 0 && q.Purpose != deadline.DeadLetters.String() // dead letters come and go, and none is there
		if vh := vhosts[q.VHost]; vh != nil && !passing && o.MayOn(&o.Actor, listDeadLetterQueues, vh, q.Queue) == nil {
			list = append(list, q)
		}
	}
	return list, nil
})

// DeadLetters selects dead letters of a queue.
type DeadLetters struct {
	Queue    QueueName
	Filter   deadletters.Filter
	ByType   bool                 // of groups
	Position deadletters.Position // leaves out what arrived after it; none: what arrives from now on
}

// Group counts dead letters by what they died of, the largest group first. When ctx ends it returns the groups of the newest, with ctx's
// error; seen is how many messages it has examined.
func (o Letters) Group(ctx context.Context, a Actor, r DeadLetters) (list []deadletters.Group, seen int, err error) {
	q, err := o.queue(&a, SearchDeadLetters, r.Queue)
	if err != nil {
		return nil, 0, err
	}
	return deadletters.Groups(ctx, q, r.Filter, r.ByType, o.now())
}

// MaxSearchCount is how many dead letters or deadlines one answer has at most.
const MaxSearchCount = 1000

// DeadLetter is one as it is in its queue.
type DeadLetter struct {
	deadletters.Letter
	DeadlineMillis int64 // Unix ms by the wall clock; 0 none
}

// Search returns dead letters that a filter matches; next is where to continue, 0 at the end, and at how far the queue was filled. When ctx ends it
// returns what it has found, with ctx's error.
func (o Letters) Search(ctx context.Context, a Actor, in QueueName, f deadletters.Filter, look deadletters.Look) (list []DeadLetter, next queue.Seq, at deadletters.Position, err error) {
	if look.Count < 1 || look.Count > MaxSearchCount {
		return nil, 0, at, OutOfRange("count", int64(look.Count))
	}
	q, err := o.queue(&a, SearchDeadLetters, in)
	if err != nil {
		return nil, 0, at, err
	}
	if look.Position.IsZero() {
		look.Position = deadletters.PositionOf(q, o.now())
	}
	look.BodyBytes = min(max(look.BodyBytes, 0), maxAnswer/look.Count)
	found, next, err := deadletters.Search(ctx, q, f, look)
	for i := range found {
		list = append(list, DeadLetter{found[i], o.Broker.UnixMillis(found[i].Deadline)})
	}
	return list, next, look.Position, err
}

// DeadLetter returns one message by its number, ready or unacked, with bodyBytes of its body (<0 all). Error: ErrMessageGone among others.
func (o Letters) DeadLetter(_ context.Context, a Actor, at QueueName, seq queue.Seq, bodyBytes int) (DeadLetter, deadletters.Position, error) {
	q, err := o.queue(&a, SearchDeadLetters, at)
	if err != nil {
		return DeadLetter{}, deadletters.Position{}, err
	}
	l, ok := deadletters.At(q, seq, bodyBytes)
	if !ok {
		return DeadLetter{}, deadletters.Position{}, ErrMessageGone
	}
	return DeadLetter{l, o.Broker.UnixMillis(l.Deadline)}, deadletters.PositionOf(q, o.now()), nil
}

// Export writes dead letters as lines of JSON to what begin returns (deadletters.Export).
func (o Letters) Export(ctx context.Context, a Actor, r DeadLetters, begin func() io.Writer) error {
	q, err := o.queue(&a, ExportDeadLetters, r.Queue)
	if err == nil {
		if r.Position.IsZero() {
			r.Position = deadletters.PositionOf(q, o.now())
		}
		err = deadletters.Export(ctx, q, r.Filter, r.Position, begin)
	}
	return err
}

// Import publishes the lines of an exported file into a queue, as the actor. It returns how many it has published, also with an
// error: *deadletters.ImportError among others.
func (o Letters) Import(ctx context.Context, a Actor, to QueueName, lines io.Reader) (n int, err error) {
	q, vh, err := o.incarnation(&a, ImportDeadLetters, to, 0)
	if err == nil {
		n, err = deadletters.Import(ctx, o.Broker, vh.NewPublisher(a.Name), q.Name, lines, func(n int) { progress(ctx)(n, 0) })
	}
	if err == nil {
		err = o.Commit(ctx)
	}
	o.Record(a, ImportDeadLetters, to, err, zap.Int("messages", n))
	return n, err
}

// maxDraft bounds a body that a person edits, in bytes.
const maxDraft = 4 << 20

// Draft returns what a replay would publish of a ready message with a body of at most 4 MiB.
func (o Letters) Draft(_ context.Context, a Actor, at QueueName, seq queue.Seq) (deadletters.Draft, error) {
	q, err := o.queue(&a, SearchDeadLetters, at)
	if err != nil {
		return deadletters.Draft{}, err
	}
	d, ok, err := deadletters.DraftOf(o.Broker, q, seq)
	if err == nil && !ok {
		err = ErrMessageGone
	}
	if len(d.Body) > maxDraft {
		return deadletters.Draft{}, &Invalid{"the body has more than 4 MiB: export the message, change the file and import it"}
	}
	return d, err
}

// Resend publishes a changed draft, as the actor, and takes the dead letter out of its queue, in one step. If skipped is not empty,
// and for an error, the message stays. A queue with a different incarnation counts as gone; with QueueID 0 any queue of the name does.
func (o Letters) Resend(ctx context.Context, a Actor, at QueueName, seq queue.Seq, d *deadletters.Draft) (skipped deadletters.SkipReason, err error) {
	q, vh, err := o.incarnation(&a, ResendDeadLetter, at, d.QueueID)
	if err == nil {
		skipped, err = deadletters.Resend(o.Broker, vh.NewPublisher(a.Name), q, seq, d)
	}
	switch {
	case err == nil && skipped == deadletters.SkippedGone:
		skipped, err = "", ErrMessageGone
	case err == nil && skipped == "":
		err = o.Commit(ctx)
	}
	o.Record(a, ResendDeadLetter, at, err, zap.Uint64("seq", uint64(seq)), zap.String("exchange", d.Exchange), zap.String("routing_key", d.RoutingKey), zap.String("skipped", string(skipped)))
	return skipped, err
}

// Review returns what Resend would do with a draft, and changes nothing. Its errors are the same.
func (o Letters) Review(_ context.Context, a Actor, at QueueName, seq queue.Seq, d *deadletters.Draft) (deadletters.Review, error) {
	q, vh, err := o.incarnation(&a, ResendDeadLetter, at, d.QueueID)
	if err != nil {
		return deadletters.Review{}, err
	}
	r, ok, err := deadletters.ReviewOf(o.Broker, vh.NewPublisher(a.Name), q, seq, d)
	if err == nil && !ok {
		err = ErrMessageGone
	}
	return r, err
}

// ReplayRequest says what a replay is to do.
type ReplayRequest struct {
	VHost  string             `json:"vhost" hide:"page"`
	Queue  string             `json:"queue" hide:"command page"`
	Filter deadletters.Filter `json:"filter" is:"filter" hide:"command page" doc:"an expression, such as reason == \"expired\"; none: all dead letters"`
	deadletters.Options
	DryRun   bool                 `json:"dry_run" hide:"page" doc:"move nothing; print what would happen"`
	Position deadletters.Position `json:"position" hide:"page" doc:"replay only messages that a dry run with this position counted; later ones stay"`
}

// StartReplay starts a replay that belongs to the actor, with the actor's rights. A dry run is complete when it returns, and has moved nothing.
// Errors: deadletters.ErrRequest, deadletters.ErrOwner or deadletters.ErrRunning among others.
var StartReplay = Define(Op{
	Name: startReplay, Title: "Send dead letters back to where they were published, or elsewhere", Rule: Rule{Role: Management, Read: Always}, Slow: true, Begins: true,
	Text:   "The answer is 202 with the replay at its start; it runs in the background. With `dry_run` it only counts, and lists where the messages would go.",
	Routes: []string{"POST /api/curfew/deadletters/{vhost}/{queue}/replay"},
}, func(ctx context.Context, c *Call, r ReplayRequest) (replay deadletters.Replay, err error) {
	q, err := c.Queue(r.Queue)
	if err == nil {
		replay, err = c.Replay(ctx, deadletters.Request{VHost: r.VHost, Queue: q.Name, User: c.Actor.Name, Filter: r.Filter, Options: r.Options, DryRun: r.DryRun, Position: r.Position})
	}
	c.Log(zap.String("replay", replay.ID))
	return replay, err
})
