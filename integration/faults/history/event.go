package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Kind is what an Event records.
type Kind string

// The kinds, each with the fields that it needs besides At.
const (
	// Declared: Queue exists from now on; DeadLetters, TTLMillis and MaxLength describe it.
	Declared Kind = "declared"
	// Started: a broker process is about to be started.
	Started Kind = "started"
	// Ended: it has ended, and every client has noticed that. How: Killed or Stopped.
	Ended Kind = "ended"
	// Publish: By is about to publish ID to Queues; Persistent, TTLMillis, Sum.
	Publish Kind = "publish"
	// Confirmed, Refused: the publisher of ID has received this answer.
	Confirmed Kind = "confirmed"
	Refused   Kind = "refused"
	// Opened: the channel By is about to consume from Queue.
	Opened Kind = "opened"
	// Delivered: By received ID from Queue; Sum, Redelivered, and From and Reason of a dead
	// letter.
	Delivered Kind = "delivered"
	// Ack, Reject, Requeue: By is about to settle ID from Queue, with From if it is a dead
	// letter.
	Ack     Kind = "ack"
	Reject  Kind = "reject"
	Requeue Kind = "requeue"
	// Synced: the broker has received everything that By had sent.
	Synced Kind = "synced"
	// Stored: the broker has answered each Ack, Reject and Requeue of By, which it does once they are durable.
	Stored Kind = "stored"
	// Closed: By is about to be closed, which requeues what it holds.
	Closed Kind = "closed"
	// Cleared: Queue is about to be purged or deleted. What it holds may end unseen, and may
	// come again if a consumer held it.
	Cleared Kind = "cleared"
	// Drained: every deadline that can have passed has passed, and every queue was found
	// empty.
	Drained Kind = "drained"
)

// How a life ended.
const (
	Killed  = "killed"  // at an arbitrary moment
	Stopped = "stopped" // by itself, after a signal
)

// Event is one line of a log.
type Event struct {
	Kind Kind   `json:"do"`
	At   int64  `json:"at"` // wall clock, Unix µs
	ID   string `json:"id,omitempty"`
	By   string `json:"by,omitempty"` // a publisher, or a channel; names are unique

	Queue       string `json:"queue,omitempty"`
	DeadLetters string `json:"dead_letters,omitempty"` // the queue's dead-letter queue; "": none
	MaxLength   bool   `json:"max_length,omitempty"`   // it has a length limit
	TTLMillis   *int64 `json:"ttl_millis,omitempty"`   // of the queue or the message; nil: none

	Queues     []string `json:"queues,omitempty"`
	Persistent bool     `json:"persistent,omitempty"`
	Sum        string   `json:"sum,omitempty"` // of body and properties, without what dead-lettering changes

	Redelivered bool   `json:"redelivered,omitempty"`
	From        string `json:"from,omitempty"`   // the queue it died in; "": it did not die
	Reason      string `json:"reason,omitempty"` // expired, rejected or maxlen

	How string `json:"how,omitempty"`
}

// Log writes events. It is safe for concurrent use.
type Log struct {
	mu  sync.Mutex
	buf *bufio.Writer
	enc *json.Encoder
	err error
}

// NewLog returns a log that writes to w through a buffer.
func NewLog(w io.Writer) *Log {
	buf := bufio.NewWriterSize(w, 1<<16)
	return &Log{buf: buf, enc: json.NewEncoder(buf)}
}

// Append writes an event as the next line.
func (l *Log) Append(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = l.enc.Encode(e)
	}
}

// Flush writes what is buffered, and returns the first error.
func (l *Log) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = l.buf.Flush()
	}
	if l.err != nil {
		return fmt.Errorf("history: write: %w", l.err)
	}
	return nil
}
