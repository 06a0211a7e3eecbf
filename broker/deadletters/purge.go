package deadletters

import (
	"context"
	"fmt"

	"curfew/broker"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// Confirmation is the number of messages that a person has seen and agrees to delete.
type Confirmation struct {
	Messages int // negative: not confirmed yet
	Position Position
}

// Unconfirmed is the error of a purge that was not confirmed with the number of messages that
// match. Matched is how many of those that had entered by Position match. A Confirmation of
// both stays valid for as long as the queue exists, whatever arrives.
type Unconfirmed struct {
	Matched  int
	Position Position
}

func (e *Unconfirmed) Error() string {
	return fmt.Sprintf("%d messages match: confirm with this number to delete them", e.Matched)
}

// Purge deletes the ready messages of q that f matches, if their number is the one in c. Otherwise it returns *Unconfirmed and deletes none. With
// a position it deletes those that had entered by then; some of them may have left since, but if there are more, because a consumer has given
// some back, it has to be confirmed again. Messages that a consumer takes while Purge runs are not deleted, nor are those that arrive while it
// runs. progress is told how many were deleted, after each page. When ctx ends, what was deleted by then is returned with
// ctx's error. Errors: ErrRedeclared and *FilterError among others.
func Purge(ctx context.Context, b *broker.Broker, q *broker.Queue, f Filter, c Confirmation, progress func(deleted int)) (deleted int, err error) {
	fixed := !c.Position.IsZero()
	m, err := c.Position.on(q, f)
	if err != nil {
		return 0, err
	}
	matched, all := 0, Look{Position: c.Position, brief: true}
	if err := walk(ctx, q, all, m, func(*Letter) bool {
		matched++
		return true
	}, nil); err != nil {
		return 0, err
	}
	if matched != c.Messages && (!fixed || matched > c.Messages) {
		return 0, &Unconfirmed{matched, c.Position}
	}
	err = walk(ctx, q, all, m, func(l *Letter) bool {
		deleted += b.Remove([]deadline.Ref{{Deadline: l.Deadline, Queue: q.ID, Seq: uint64(l.Seq)}})
		return deleted < c.Messages
	}, func(queue.Seq, int) {
		progress(deleted)
	})
	return deleted, err
}
