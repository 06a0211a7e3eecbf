package operate

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/deadletters"
	"curfew/broker/queue"
)

var _ = Group("dlq", "List, search, replay, edit, purge, export and import dead letters of a running Curfew")

// ListDeadLetterQueues lists the queues that dead letters go to or are in, the fullest first, as they were within the last second; vhost is ""
// for all. The caller must not change the result.
func (o Letters) ListDeadLetterQueues(_ context.Context, a Actor, vhost string) ([]*deadletters.Queue, error) {
	if err := o.permit(&a, ListDeadLetterQueues, vhost); err != nil {
		return nil, err
	}
	all := o.deadLetterQueues.get(&o.epoch, 100*time.Microsecond, func() (all []deadletters.Queue, n int) {
		for _, vh := range o.Broker.VHosts() {
			all = append(all, deadletters.Queues(vh)...)
			n += len(vh.Queues.List())
		}
		slices.SortStableFunc(all, func(a, b deadletters.Queue) int { return cmp.Compare(b.Ready+b.Unacked, a.Ready+a.Unacked) })
		return all, n
	})
	vhosts, list := map[string]*broker.VHost{}, []*deadletters.Queue{}
	for _, vh := range o.VHosts(a) {
		vhosts[vh.Name()] = vh
	}
	for i := range all {
		q := &all[i]
		if vh := vhosts[q.VHost]; vh != nil && (vhost == "" || vhost == q.VHost) && o.MayOn(&a, ListDeadLetterQueues, vh, q.Queue) == nil {
			list = append(list, q)
		}
	}
	return list, nil
}

// DeadLetters selects dead letters of a queue.
type DeadLetters struct {
	Queue    QueueName
	Filter   deadletters.Filter
	Position deadletters.Position // leaves out what arrived after it; none: what arrives from now on
}

// GroupDeadLetters counts dead letters by what they died of, the largest group first. When ctx ends it returns the groups of the newest, with ctx's
// error; seen is how many messages it has examined.
func (o Letters) GroupDeadLetters(ctx context.Context, a Actor, r DeadLetters) (list []deadletters.Group, seen int, err error) {
	q, err := o.queue(&a, SearchDeadLetters, r.Queue)
	if err != nil {
		return nil, 0, err
	}
	return deadletters.Groups(ctx, q, r.Filter, o.now())
}

// MaxSearchCount is how many dead letters or deadlines one answer has at most.
const MaxSearchCount = 1000

// SearchRequest says which dead letters to show.
type SearchRequest struct {
	DeadLetters
	After            queue.Seq // continues after this one; 0: from the head, or with Newest from the tail
	Newest           bool      // the newest first
	Count, BodyBytes int
}

// DeadLetter is one as it is in its queue.
type DeadLetter struct {
	deadletters.Letter
	DeadlineMillis int64 // Unix ms by the wall clock; 0 none
}

// Unacked reports whether a consumer holds the dead letter.
func (l *DeadLetter) Unacked() bool { return l.State == queue.Unacked }

// SearchDeadLetters returns dead letters; next is where to continue, 0 at the end, and at how far the queue was filled. When ctx ends it returns
// what it has found, with ctx's error.
func (o Letters) SearchDeadLetters(ctx context.Context, a Actor, r SearchRequest) (list []DeadLetter, next queue.Seq, at deadletters.Position, err error) {
	if r.Count < 1 || r.Count > MaxSearchCount {
		return nil, 0, at, &OutOfRange{"count", int64(r.Count)}
	}
	q, err := o.queue(&a, SearchDeadLetters, r.Queue)
	if err != nil {
		return nil, 0, at, err
	}
	if at = r.Position; at.IsZero() {
		at = deadletters.PositionOf(q, o.now())
	}
	found, next, err := deadletters.Search(ctx, q, r.Filter, deadletters.Look{
		After: r.After, Newest: r.Newest, Count: r.Count, BodyBytes: min(max(r.BodyBytes, 0), maxAnswer/r.Count), Position: at,
	})
	for i := range found {
		list = append(list, DeadLetter{found[i], o.Broker.UnixMillis(found[i].Deadline)})
	}
	return list, next, at, err
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

// ExportDeadLetters writes dead letters as lines of JSON. Nothing is written if the error is about the actor or the request.
func (o Letters) ExportDeadLetters(ctx context.Context, a Actor, r DeadLetters, w io.Writer) error {
	q, err := o.queue(&a, ExportDeadLetters, r.Queue)
	if err == nil {
		if r.Position.IsZero() {
			r.Position = deadletters.PositionOf(q, o.now())
		}
		_, err = deadletters.Export(ctx, q, r.Filter, r.Position, w)
	}
	return err
}

// PurgeDeadLetters deletes dead letters if messages is their number. When ctx ends it stops. Error: *deadletters.Unconfirmed among others.
func (o Letters) PurgeDeadLetters(ctx context.Context, a Actor, r DeadLetters, messages int) (deleted int, err error) {
	q, err := o.queue(&a, PurgeDeadLetters, r.Queue)
	if err == nil {
		deleted, err = deadletters.Purge(ctx, o.Broker, q, r.Filter, deadletters.Confirmation{Messages: messages, Position: r.Position}, func(n int) { report(ctx, n, messages) })
	}
	return deleted, o.purged(ctx, &a, PurgeDeadLetters, r.Queue, deleted, err)
}

// purged ends a purge that somebody has to confirm: nothing is recorded until it is confirmed.
func (o *Access) purged(ctx context.Context, a *Actor, op Operation, at QueueName, deleted int, err error) error {
	if _, asks := errors.AsType[*deadletters.Unconfirmed](err); asks {
		return err
	}
	if err == nil {
		err = o.Commit(ctx)
	}
	o.Record(*a, op, at, err, zap.Int("messages", deleted))
	return err
}

// ImportDeadLetters publishes the lines of an exported file into a queue, as the actor. It returns how many it has published, also with an
// error: *deadletters.ImportError among others.
func (o Letters) ImportDeadLetters(ctx context.Context, a Actor, to QueueName, lines io.Reader) (n int, err error) {
	q, err := o.queue(&a, ImportDeadLetters, to)
	var vh *broker.VHost
	if err == nil {
		vh, err = o.Broker.VHostOf(q)
	}
	if err == nil {
		n, err = deadletters.Import(ctx, o.Broker, vh.NewPublisher(a.Name), q.Name(), lines, func(n int) { report(ctx, n, 0) })
	}
	if err == nil {
		err = o.Commit(ctx)
	}
	o.Record(a, ImportDeadLetters, to, err, zap.Int("messages", n))
	return n, err
}

// Draft is what a replay would publish of one dead letter, for a person to change.
type Draft struct {
	deadletters.Draft
	QueueID uint64 // the incarnation of its queue
}

// maxDraft bounds a body that a person edits, in bytes.
const maxDraft = 4 << 20

// DraftDeadLetter returns what a replay would publish of a ready message with a body of at most 4 MiB.
func (o Letters) DraftDeadLetter(_ context.Context, a Actor, at QueueName, seq queue.Seq) (Draft, error) {
	q, err := o.queue(&a, SearchDeadLetters, at)
	if err != nil {
		return Draft{}, err
	}
	d, ok, err := deadletters.DraftOf(o.Broker, q, seq)
	if err == nil && !ok {
		err = ErrMessageGone
	}
	if len(d.Body) > maxDraft {
		return Draft{}, &Invalid{"the body has more than 4 MiB: export the message, change the file and import it"}
	}
	return Draft{d, q.ID()}, err
}

// ResendDeadLetter publishes a changed draft, as the actor, and takes the dead letter out of its queue, in one step. If skipped is not empty,
// and for an error, the message stays. A queue with a different incarnation counts as gone; with QueueID 0 any queue of the name does.
func (o Letters) ResendDeadLetter(ctx context.Context, a Actor, at QueueName, seq queue.Seq, d Draft) (skipped deadletters.SkipReason, err error) {
	q, err := o.queue(&a, ResendDeadLetter, at)
	if err == nil && cmp.Or(d.QueueID, q.ID()) != q.ID() {
		err = ErrNotFound
	}
	var vh *broker.VHost
	if err == nil {
		vh, err = o.Broker.VHostOf(q)
	}
	if err == nil {
		skipped, err = deadletters.Resend(o.Broker, vh.NewPublisher(a.Name), q, seq, &d.Draft)
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

// ReviewDraft returns what ResendDeadLetter would do with a draft, and changes nothing. Its errors are the same.
func (o Letters) ReviewDraft(_ context.Context, a Actor, at QueueName, seq queue.Seq, d Draft) (deadletters.Review, error) {
	q, err := o.queue(&a, ResendDeadLetter, at)
	if err == nil && cmp.Or(d.QueueID, q.ID()) != q.ID() {
		err = ErrNotFound
	}
	var vh *broker.VHost
	if err == nil {
		vh, err = o.Broker.VHostOf(q)
	}
	if err != nil {
		return deadletters.Review{}, err
	}
	r, ok, err := deadletters.ReviewOf(o.Broker, vh.NewPublisher(a.Name), q, seq, &d.Draft)
	if err == nil && !ok {
		err = ErrMessageGone
	}
	return r, err
}

// StartReplay starts a replay that belongs to the actor, with the actor's rights. A dry run is complete when it returns, and has moved nothing.
// Errors: deadletters.ErrRequest, deadletters.ErrOwner or deadletters.ErrRunning among others.
func (o Letters) StartReplay(ctx context.Context, a Actor, r deadletters.Request) (replay deadletters.Replay, err error) {
	at := QueueName{r.VHost, r.Queue}
	q, err := o.queue(&a, StartReplay, at)
	if err == nil {
		r.Queue, r.User = q.Name(), a.Name
		replay, err = o.Replay(ctx, r)
	}
	if !r.DryRun || Refused(err) {
		o.Record(a, StartReplay, at, err, zap.String("replay", replay.ID))
	}
	return replay, err
}
