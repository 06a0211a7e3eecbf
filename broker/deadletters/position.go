package deadletters

import (
	"fmt"
	"strconv"
	"strings"

	"curfew/broker"
	"curfew/broker/queue"
)

// Position is how far a queue was filled at one instant: the messages that had entered it by then. A search returns it. A change with a Position
// leaves alone what arrived after it, so that a growing queue can be purged or replayed as it was shown. The zero Position is none.
type Position struct {
	QueueID uint64      // the queue's incarnation
	Last    []queue.Seq // by priority, the last message that had entered; 0: none had
}

func positionOf(q *broker.Queue) Position { return Position{q.ID(), q.Tails()} }

// IsZero reports whether p is the zero Position.
func (p Position) IsZero() bool { return p.QueueID == 0 }

// includes reports whether the message had entered by then.
func (p Position) includes(s queue.Seq) bool {
	priority := int(s.Priority())
	return priority < len(p.Last) && s <= p.Last[priority]
}

// MarshalText implements encoding.TextMarshaler: the numbers in base 36, such as "a1-2s.0.k".
func (p Position) MarshalText() ([]byte, error) {
	if p.IsZero() {
		return nil, nil
	}
	last := make([]string, len(p.Last))
	for i, s := range p.Last {
		last[i] = strconv.FormatUint(uint64(s), 36)
	}
	return []byte(strconv.FormatUint(p.QueueID, 36) + "-" + strings.Join(last, ".")), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The empty text is the zero Position.
func (p *Position) UnmarshalText(text []byte) error {
	*p = Position{}
	if len(text) == 0 {
		return nil
	}
	id, last, _ := strings.Cut(string(text), "-")
	read := Position{}
	var err error
	if read.QueueID, err = strconv.ParseUint(id, 36, 64); err != nil || read.IsZero() {
		return fmt.Errorf("%q is not a position in a queue", text)
	}
	for part := range strings.SplitSeq(last, ".") {
		s, err := strconv.ParseUint(part, 36, 64)
		if err != nil || len(read.Last) == 256 {
			return fmt.Errorf("%q is not a position in a queue", text)
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
