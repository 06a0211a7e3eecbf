package deadletters

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"curfew/broker"
	"curfew/broker/queue"
)

// Position is how far a queue was filled at one instant: the messages that had entered it by then. A search returns it. A change with a Position
// leaves alone what arrived after it, so that a growing queue can be purged or replayed as it was shown. The zero Position is none.
type Position struct {
	QueueID uint64      // the queue's incarnation
	Last    []queue.Seq // by priority, the last message that had entered; 0: none had
	Millis  int64       // the instant, Unix ms: what ago in a filter counts from
}

// PositionOf returns the present position in a queue.
func PositionOf(q *broker.Queue, now time.Time) Position {
	return Position{q.ID, q.Messages.Tails(), now.UnixMilli()}
}

// on compiles a filter for the messages of q that the position includes; the zero Position becomes the present one,
// by the clock of the machine. Error: ErrRedeclared, if it is a
// position in an earlier incarnation of the queue, among others.
func (p *Position) on(q *broker.Queue, f Filter) (*matcher, error) {
	if p.IsZero() {
		*p = PositionOf(q, time.Now())
	}
	if p.QueueID != q.ID {
		return nil, ErrRedeclared
	}
	return f.compile(time.UnixMilli(p.Millis))
}

// IsZero reports whether p is the zero Position.
func (p Position) IsZero() bool { return p.QueueID == 0 }

// includes reports whether the message had entered by then.
func (p Position) includes(s queue.Seq) bool {
	priority := int(s.Priority())
	return priority < len(p.Last) && s <= p.Last[priority]
}

// MarshalText implements encoding.TextMarshaler: the numbers in base 36, such as "a1-2s.0.k-mcs0g0k1".
func (p Position) MarshalText() ([]byte, error) {
	if p.IsZero() {
		return nil, nil
	}
	last := make([]string, len(p.Last))
	for i, s := range p.Last {
		last[i] = strconv.FormatUint(uint64(s), 36)
	}
	return []byte(strconv.FormatUint(p.QueueID, 36) + "-" + strings.Join(last, ".") + "-" + strconv.FormatInt(p.Millis, 36)), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The empty text is the zero Position.
func (p *Position) UnmarshalText(text []byte) error {
	*p = Position{}
	if len(text) == 0 {
		return nil
	}
	wrong := fmt.Errorf("%q is not a position in a queue", text)
	parts := strings.Split(string(text), "-")
	if len(parts) != 3 {
		return wrong
	}
	read, err := Position{}, error(nil)
	if read.QueueID, err = strconv.ParseUint(parts[0], 36, 64); err != nil || read.IsZero() {
		return wrong
	}
	if read.Millis, err = strconv.ParseInt(parts[2], 36, 64); err != nil {
		return wrong
	}
	for part := range strings.SplitSeq(parts[1], ".") {
		s, err := strconv.ParseUint(part, 36, 64)
		if err != nil || len(read.Last) == 256 {
			return wrong
		}
		read.Last = append(read.Last, queue.Seq(s))
	}
	*p = read
	return nil
}

// String is p's text.
func (p Position) String() string {
	text, _ := p.MarshalText() // it never fails
	return string(text)
}
