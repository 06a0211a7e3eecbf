package operate

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/deadletters"
	"curfew/broker/deadline"
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

// ReplayRequest says what a replay is to do.
type ReplayRequest struct {
	VHost  string             `json:"vhost" hide:"page"`
	Queue  string             `json:"queue" hide:"command page"`
	Filter deadletters.Filter `json:"filter" is:"filter" hide:"page" doc:"an expression, such as reason == \"expired\"; none: all dead letters"`
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
