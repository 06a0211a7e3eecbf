package deadletters

import (
	"context"
	"fmt"

	"curfew/broker"
	"curfew/broker/deadline"
)

// Confirmation is what a person who was shown how many messages there are agrees to delete.
type Confirmation struct {
	Messages int // negative: nothing yet
	Position Position
}

// Unconfirmed is the error of a purge that was not confirmed with the number of messages it
// is about. A Confirmation of that number and position is good for as long as the queue
// exists, whatever arrives.
type Unconfirmed struct {
	Matched  int
	Position Position
}

func (e *Unconfirmed) Error() string {
	return fmt.Sprintf("%d messages match: confirm with this number to delete them", e.Matched)
}

// Purge deletes the ready messages of q that f matches, if they are as many as c says.
// Otherwise it returns *Unconfirmed and deletes none. With a position it deletes those that
// had entered by then; some of them may have left since. A position in an earlier incarnation
// of the queue confirms nothing: these are other messages. What a consumer takes while Purge
// runs is not deleted, and what arrives meanwhile is not looked at.
func Purge(ctx context.Context, b *broker.Broker, q *broker.Queue, f *Filter, c Confirmation) (deleted int, err error) {
	m, err := f.compile()
	if err != nil {
		return 0, err
	}
	upTo, fixed := positionOf(q), c.Position.QueueID == q.ID()
	if fixed {
		upTo = c.Position
	}
	matched := 0
	if err := walk(ctx, q, way{}, m, func(l *Letter) bool {
		if upTo.includes(l.Seq) {
			matched++
		}
		return true
	}, nil); err != nil {
		return 0, err
	}
	redeclared := !fixed && !c.Position.IsZero()
	if redeclared || matched != c.Messages && (!fixed || matched > c.Messages) {
		return 0, &Unconfirmed{matched, positionOf(q)}
	}
	err = walk(ctx, q, way{}, m, func(l *Letter) bool {
		if upTo.includes(l.Seq) {
			deleted += b.Remove([]deadline.Ref{{Deadline: l.Deadline, Queue: q.ID(), Seq: uint64(l.Seq)}})
		}
		return deleted < c.Messages
	}, nil)
	return deleted, err
}
