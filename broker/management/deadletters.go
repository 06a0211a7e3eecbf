package management

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/queue"
)

// What RabbitMQ has nothing like: see package broker/deadletters. To look at a queue, to
// purge it and to replay from it takes the permission to read it; where a replay goes to,
// that to write there. A replay is seen and steered by who began it and administrators.
var deadLetterRoutes = []route{
	{method: get, path: "/api/curfew/deadletters", need: management, handle: (*request).listDeadLetters},
	{method: get, path: "/api/curfew/deadletters/{vhost}", need: management, handle: (*request).listDeadLetters},
	{method: post, path: "/api/curfew/deadletters/{vhost}/{queue}/groups", need: management, handle: (*request).groupDeadLetters},
	{method: post, path: "/api/curfew/deadletters/{vhost}/{queue}/search", need: management, handle: (*request).searchDeadLetters},
	{method: post, path: "/api/curfew/deadletters/{vhost}/{queue}/replay", need: management, handle: (*request).replayDeadLetters},
	{method: post, path: "/api/curfew/deadletters/{vhost}/{queue}/purge", need: management, handle: (*request).purgeDeadLetters},
	{method: post, path: "/api/curfew/deadletters/{vhost}/{queue}/export", need: management, handle: (*request).exportDeadLetters},
	{method: post, path: "/api/curfew/deadletters/{vhost}/{queue}/import", need: management, handle: (*request).importDeadLetters, body: maxImport},
	{method: get, path: "/api/curfew/replays", need: management, handle: (*request).listReplays},
	{method: get, path: "/api/curfew/replays/{run}", need: management, handle: (*request).getReplay},
	{method: remove, path: "/api/curfew/replays/{run}", need: management, handle: (*request).cancelReplay},
	{method: post, path: "/api/curfew/replays/{run}/resume", need: management, handle: (*request).resumeReplay},
}

const (
	// maxImport bounds an imported file; larger ones go in parts.
	maxImport = 4 << 30
	// longRequest is how long a look at a large queue, or a file, may take.
	longRequest = 30 * time.Minute
	maxFound    = 1000
)

// lookup is the body of requests about the dead letters of a queue.
type lookup struct {
	Filter   deadletters.Filter `json:"filter"`
	After    queue.Seq          `json:"after"`
	Count    int                `json:"count"`    // default peekCount
	Truncate *int               `json:"truncate"` // bytes of each body; default peekBytes
	Encoding string             `json:"encoding"`
	Confirm  *int               `json:"confirm"` // of a purge: how many it is about
	deadletters.Options
	DryRun bool `json:"dry_run"`
}

// lookup reads the body and finds the queue, which the user has to be allowed to read.
// The answer may take long.
func (q *request) lookup() (*broker.Queue, *lookup, error) {
	l := &lookup{Count: peekCount}
	decoder := json.NewDecoder(q.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(l); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, bad(err.Error())
	}
	if l.Count < 1 || l.Count > maxFound {
		return nil, nil, bad([]any{"out_of_range", "count", l.Count})
	}
	q.takeTime()
	_, from, err := q.queueToRead()
	return from, l, err
}

// takeTime lets the request last longer than others may.
func (q *request) takeTime() {
	c, until := http.NewResponseController(q.w), time.Now().Add(longRequest)
	_ = c.SetWriteDeadline(until) // a writer that has none needs none
	_ = c.SetReadDeadline(until)
}

func (q *request) listDeadLetters() error {
	list := []deadletters.Holder{}
	for _, vh := range q.vhosts() {
		for _, h := range deadletters.Queues(vh) {
			if q.user.is(monitor) || q.rights(vh).Queue(access.Read, h.Queue) == nil {
				list = append(list, h)
			}
		}
	}
	return q.answer(list)
}

func (q *request) groupDeadLetters() error {
	from, l, err := q.lookup()
	if err != nil {
		return err
	}
	groups, err := deadletters.Groups(q.Context(), from, &l.Filter, q.api.Now())
	if err != nil {
		return filterProblem(err)
	}
	return q.answer(groups)
}

// filterProblem is a pattern that is none; what the broker says stays.
func filterProblem(err error) error {
	if _, ok := errors.AsType[*amqp.Exception](err); ok {
		return err
	}
	return bad(err.Error())
}

// searchDeadLetters answers {"items": [...], "next": n}: next goes into after, 0 at the
// end.
func (q *request) searchDeadLetters() error {
	from, l, err := q.lookup()
	if err != nil {
		return err
	}
	truncate := peekBytes
	if l.Truncate != nil {
		truncate = min(max(*l.Truncate, 0), maxAnswer/l.Count)
	}
	found, next, err := deadletters.Search(q.Context(), from, &l.Filter, l.After, l.Count, truncate)
	if err != nil {
		return filterProblem(err)
	}
	items := []object{}
	for i := range found {
		items = append(items, q.letterObject(&found[i], l.Encoding))
	}
	return q.answer(object{"items": items, "next": next})
}

// letterObject is a message as peek shows it, with its history.
func (q *request) letterObject(l *deadletters.Letter, encoding string) object {
	o := messageObject(l.Exchange, l.RoutingKey, l.Redelivered, l.Properties.Append(nil), l.Body, l.BodyBytes, &fetch{encoding: encoding, truncate: -1})
	o["seq"], o["state"], o["persistent"], o["deadline"] = uint64(l.Seq), l.State.String(), l.Persistent, nil
	if l.Deadline != 0 {
		o["deadline"] = q.api.b.UnixMillis(l.Deadline)
	}
	o["deaths"], o["replays"], o["replay_run"] = l.Deaths, l.Replays, l.Run
	if l.Deaths == nil {
		o["deaths"] = []any{}
	}
	return o
}

func (q *request) replayDeadLetters() error {
	if q.api.Replays == nil {
		return errNotFound
	}
	from, l, err := q.lookup()
	if err != nil {
		return err
	}
	run, err := q.api.Replays.Start(q.Context(), deadletters.Order{
		VHost: from.VHost().Name(), Queue: from.Name(), User: q.user.Name, Filter: l.Filter, Options: l.Options, DryRun: l.DryRun,
	})
	return q.answerRun(run, err)
}

func (q *request) answerRun(run deadletters.Run, err error) error {
	switch {
	case errors.Is(err, deadletters.ErrNoRun):
		return errNotFound
	case errors.Is(err, deadletters.ErrOrder):
		return bad(err.Error())
	case errors.Is(err, deadletters.ErrRunning), errors.Is(err, deadletters.ErrOwner):
		return &problem{http.StatusConflict, "conflict", err.Error()}
	case err != nil:
		return err
	}
	return q.answer(run)
}

func (q *request) listReplays() error {
	list := []deadletters.Run{}
	if q.api.Replays != nil {
		list = q.api.Replays.List(&q.user.User)
	}
	return q.answer(list)
}

// replay does something with the run that the path names; runs know who may.
func (q *request) replay(do func(r *deadletters.Runs, by *access.User, id string) (deadletters.Run, error)) error {
	if q.api.Replays == nil {
		return errNotFound
	}
	return q.answerRun(do(q.api.Replays, &q.user.User, q.param("run")))
}

func (q *request) getReplay() error    { return q.replay((*deadletters.Runs).Get) }
func (q *request) cancelReplay() error { return q.replay((*deadletters.Runs).Cancel) }
func (q *request) resumeReplay() error { return q.replay((*deadletters.Runs).Resume) }

// purgeDeadLetters deletes what the filter matches, if confirm says how many that is;
// else 409 with the number in "matched".
func (q *request) purgeDeadLetters() error {
	from, l, err := q.lookup()
	if err != nil {
		return err
	}
	confirmed := -1
	if l.Confirm != nil {
		confirmed = *l.Confirm
	}
	deleted, err := deadletters.Purge(q.Context(), q.api.b, from, &l.Filter, confirmed)
	if u, ok := errors.AsType[*deadletters.Unconfirmed](err); ok {
		answerJSON(q.w, http.StatusConflict, object{"error": "unconfirmed", "reason": u.Error(), "matched": u.Matched})
		return nil
	}
	if err == nil {
		err = q.safe()
	}
	if err != nil {
		return filterProblem(err)
	}
	return q.answer(object{"deleted": deleted})
}

// safe waits until what was done is as safe as the store makes it.
func (q *request) safe() error {
	done := make(chan error, 1)
	q.api.b.Commit(func(err error) { done <- err })
	return <-done
}

// exportDeadLetters answers with a line of JSON for each message.
func (q *request) exportDeadLetters() error {
	from, l, err := q.lookup()
	if err == nil {
		err = l.Filter.Check()
	}
	if err != nil {
		return filterProblem(err)
	}
	q.w.Header().Set("Content-Type", "application/jsonl")
	if _, err := deadletters.Export(q.Context(), from, &l.Filter, q.w); err != nil {
		panic(http.ErrAbortHandler) // what was sent is not all there is
	}
	return nil
}

// importDeadLetters publishes the lines of the body into the queue.
func (q *request) importDeadLetters() error {
	q.takeTime()
	vh, to, err := q.queueToRead()
	if err != nil {
		return err
	}
	n, err := deadletters.Import(q.Context(), q.api.b, vh.NewPublisher(q.user.Name), to.Name(), q.Body)
	if at, ok := errors.AsType[*deadletters.ImportError](err); ok {
		status, kind := http.StatusBadRequest, "bad_request"
		if errors.Is(err, deadletters.ErrBlocked) {
			status, kind = http.StatusServiceUnavailable, "service_unavailable"
		}
		answerJSON(q.w, status, object{"error": kind, "reason": at.Error(), "imported": n})
		return nil
	}
	if err != nil {
		return err
	}
	return q.answer(object{"imported": n})
}
