package ledger

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Kind says what an Event tells.
type Kind string

// The kinds, each with the fields it needs besides At.
const (
	// Declared: Queue is there from now on; DeadLetters, TTLMillis and MaxLength describe it.
	Declared Kind = "declared"
	// Started: a broker process is about to be started.
	Started Kind = "started"
	// Ended: it has ended, and every client has noticed. How: Killed or Stopped.
	Ended Kind = "ended"
	// Publish: By is about to publish ID to Queues; Persistent, TTLMillis, Sum.
	Publish Kind = "publish"
	// Confirmed, Refused: the publisher of ID was told so.
	Confirmed Kind = "confirmed"
	Refused   Kind = "refused"
	// Opened: the channel By is about to consume from Queue.
	Opened Kind = "opened"
	// Delivered: By got ID from Queue; Sum, Redelivered, and From and Reason of a dead letter.
	Delivered Kind = "delivered"
	// Ack, Reject, Requeue: By is about to settle ID from Queue, with the From of a dead letter.
	Ack     Kind = "ack"
	Reject  Kind = "reject"
	Requeue Kind = "requeue"
	// Synced: the broker has taken all that By had sent.
	Synced Kind = "synced"
	// Closed: By is about to be closed, giving back what it holds.
	Closed Kind = "closed"
	// Drained: all deadlines that can have passed have, and every queue was found empty.
	Drained Kind = "drained"
)

// How a life ended.
const (
	Killed  = "killed"  // in the middle of whatever it did
	Stopped = "stopped" // by itself, after a signal
)

// Event is one line of a log.
type Event struct {
	Kind Kind   `json:"do"`
	At   int64  `json:"at"` // wall clock, Unix µs
	ID   string `json:"id,omitempty"`
	By   string `json:"by,omitempty"` // a publisher, or a channel; never two of one name

	Queue       string `json:"queue,omitempty"`
	DeadLetters string `json:"dead_letters,omitempty"` // the queue that gets them; "": none
	MaxLength   bool   `json:"max_length,omitempty"`   // it has one
	TTLMillis   *int64 `json:"ttl_millis,omitempty"`   // of the queue or the message; nil: none

	Queues     []string `json:"queues,omitempty"`
	Persistent bool     `json:"persistent,omitempty"`
	Sum        string   `json:"sum,omitempty"` // of body and properties, less what dead-lettering changes

	Redelivered bool   `json:"redelivered,omitempty"`
	From        string `json:"from,omitempty"`   // the queue it died in; "" for one that did not
	Reason      string `json:"reason,omitempty"` // why: expired, rejected, maxlen

	How string `json:"how,omitempty"`
}

// Log writes events. Safe for concurrent use.
type Log struct {
	mu  sync.Mutex
	buf *bufio.Writer
	enc *json.Encoder
	err error
}

// NewLog makes a log that writes to w, through a buffer.
func NewLog(w io.Writer) *Log {
	buf := bufio.NewWriterSize(w, 1<<16)
	return &Log{buf: buf, enc: json.NewEncoder(buf)}
}

// Append adds an event as the next line.
func (l *Log) Append(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = l.enc.Encode(e)
	}
}

// Flush writes what is buffered and returns the first error there was.
func (l *Log) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = l.buf.Flush()
	}
	if l.err != nil {
		return fmt.Errorf("ledger: write: %w", l.err)
	}
	return nil
}
