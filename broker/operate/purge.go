package operate

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"curfew/broker/deadletters"
)

// PurgeRequest says which ready messages of a queue to delete, and how many they are; nil: it only counts.
type PurgeRequest struct {
	VHost    string               `json:"vhost"`
	Queue    string               `json:"queue"`
	Filter   deadletters.Filter   `json:"filter" is:"filter" doc:"an expression, such as reason == \"expired\"; none: all dead letters"`
	Confirm  *int                 `json:"confirm" is:"confirm" doc:"how many messages match" help:"how many messages you expect to be deleted, as printed without this flag"`
	Position deadletters.Position `json:"position" hide:"command" doc:"the one from an earlier answer: messages that arrived after it are left alone"`
	All      bool                 `json:"-"` // all of them, however many they are: RabbitMQ's purge
}

// Deleted is how many messages were deleted.
type Deleted struct {
	Deleted int `json:"deleted"`
}

// PurgeQueue deletes the ready messages of a queue, and PurgeDeadLetters those of a dead-letter queue.
var (
	PurgeQueue = Define(Op{
		Name: "purge_queue", Title: "Delete the ready messages of a queue; without --confirm it only prints how many there are", Rule: Rule{Role: Management, Read: Always}, Long: true,
		Text:   "As purge_dead_letters, for any queue.",
		Routes: []string{"POST /api/curfew/queues/{vhost}/{queue}/purge"}, Command: "queue purge <queue>", Flags: []string{"confirm"},
	}, purge)
	PurgeDeadLetters = Define(Op{
		Name: "purge_dead_letters", Title: "Delete the dead letters that a filter matches", Rule: Rule{Role: Management, Read: Always}, Long: true,
		Text: "`confirm` must be their number. Otherwise nothing is deleted: the answer is 409, with the number in `matched`. " +
			"A second request with its `position` is about the same messages.",
		Routes: []string{"POST /api/curfew/deadletters/{vhost}/{queue}/purge"}, Command: "dlq purge <queue>",
		Help: `Delete the dead letters that the filter selects. Without --confirm it only prints how many there are (exit code 5);
with it, nothing is deleted unless the number is right. The value it prints also names the messages that it counted, so later
ones stay.`,
	}, purge)
)

// purge deletes messages if their number is confirmed. When ctx ends it stops. Error: *deadletters.Unconfirmed among others; then nothing is recorded.
func purge(ctx context.Context, c *Call, r PurgeRequest) (done Deleted, err error) {
	q, err := c.Queue(r.Queue)
	if err == nil {
		q, err = c.VHost.Queues.GetFor(Nobody{}, q.Name)
	}
	seen := deadletters.Confirmation{Messages: -1, Position: r.Position}
	if r.Confirm != nil {
		seen.Messages = *r.Confirm
	}
	switch {
	case err != nil:
	case r.All:
		done.Deleted = q.Messages.Purge()
	default:
		done.Deleted, err = deadletters.Purge(ctx, c.Broker, q, r.Filter, seen, func(n int) { Note(ctx)(n, seen.Messages) })
	}
	if _, c.Asks = errors.AsType[*deadletters.Unconfirmed](err); err == nil {
		err = c.Commit(ctx)
	}
	c.Log(zap.Int("messages", done.Deleted))
	return done, err
}
