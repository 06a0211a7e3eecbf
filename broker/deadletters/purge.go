package deadletters

import (
	"context"
	"fmt"

	"curfew/broker"
	"curfew/broker/queue"
)

// Unconfirmed is the error of a purge that was not confirmed with the number of
// messages it is about.
type Unconfirmed struct{ Matched int }

func (e *Unconfirmed) Error() string {
	return fmt.Sprintf("%d messages match: confirm with this number to delete them", e.Matched)
}

// Purge deletes the ready messages of q that f matches, if they are as many as
// confirmed; else it is *Unconfirmed and deletes none. What a consumer takes between the
// two looks is not deleted; what comes meanwhile is not looked at.
func Purge(ctx context.Context, b *broker.Broker, q *broker.Queue, f *Filter, confirmed int) (deleted int, err error) {
	m, err := f.compile()
	if err != nil {
		return 0, err
	}
	tails := q.Tails()
	old := func(s queue.Seq) bool { return int(s.Priority()) < len(tails) && s <= tails[s.Priority()] }
	matched := 0
	if err := walk(ctx, q, 0, m, glance, func(l *Letter) bool {
		if old(l.Seq) {
			matched++
		}
		return true
	}, nil); err != nil {
		return 0, err
	}
	if matched != confirmed {
		return 0, &Unconfirmed{matched}
	}
	err = walk(ctx, q, 0, m, glance, func(l *Letter) bool {
		if old(l.Seq) {
			deleted += b.Remove([]broker.MessageRef{{Deadline: l.Deadline, Queue: q.ID(), Seq: uint64(l.Seq)}})
		}
		return deleted < confirmed
	}, nil)
	return deleted, err
}
