package deadletters

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"curfew/broker/queue"
)

// Page is a page of dead letters, as the API answers.
type Page struct {
	Items    []Item    `json:"items"`
	Next     queue.Seq `json:"next"`     // the value of after for the next page; 0: there is none
	Position Position  `json:"position"` // how far the queue was filled then
}

// Words implements operate.Effect.
func (p Page) Words() (sentences []string, harm, more bool) {
	if p.Next != 0 {
		sentences = append(sentences, fmt.Sprintf("there are more: raise --count (at most 1000), continue with --after %d, or narrow the search", p.Next))
	}
	return sentences, false, false
}

// Message is a message, as the API answers.
type Message struct {
	Redelivered bool           `json:"redelivered"`
	Exchange    string         `json:"exchange"`    // by which it came here
	RoutingKey  string         `json:"routing_key"` // with which it came here
	Properties  map[string]any `json:"properties"`  // the ones that it has, by RabbitMQ's names
	Bytes       int            `json:"payload_bytes"`
	Payload     string         `json:"payload"`                     // the body, or its beginning
	Encoding    string         `json:"payload_encoding"`            // string or base64
	Truncated   bool           `json:"payload_truncated,omitempty"` // it is only the beginning
}

// ID is the message-id.
func (m *Message) ID() string { return m.text("message_id") }

func (m *Message) text(property string) string {
	text, _ := m.Properties[property].(string)
	return text
}

// Text is the body in a table.
func (m *Message) Text() string {
	if m.Encoding == "base64" {
		return "(base64) " + m.Payload
	}
	return m.Payload
}

// Queued is a message in its queue, as the API answers.
type Queued struct {
	Seq        queue.Seq `json:"seq"`   // the message's number in the queue
	State      string    `json:"state"` // ready or unacked
	Persistent bool      `json:"persistent"`
	Deadline   *int64    `json:"deadline"` // Unix ms; null: it has none
	Message
}

// Cells implements operate.Rowed.
func (q Queued) Cells(at func(time.Time) string) (heads, cells []string) {
	due := "-"
	if q.Deadline != nil {
		due = at(time.UnixMilli(*q.Deadline))
	}
	return []string{"SEQ", "STATE", "EXCHANGE?", "KEY?", "DEADLINE", "BYTES?", "MESSAGE-ID", "BODY"},
		[]string{strconv.FormatUint(uint64(q.Seq), 10), q.State, q.Exchange, q.RoutingKey, due, strconv.Itoa(q.Bytes), q.ID(), q.Text()}
}

// Item is a dead letter, as the API answers.
type Item struct {
	Letter Letter `json:"-"` // as it is in the queue
	Queued
	Deaths   []Death `json:"deaths"`     // the latest first
	Replays  int64   `json:"replays"`    // how often it was replayed
	ReplayID string  `json:"replay_run"` // ID of the replay that replayed it last; empty: none did
}

// Cells implements operate.Rowed.
func (i Item) Cells(at func(time.Time) string) (heads, cells []string) {
	died, key := Death{}, i.RoutingKey
	if len(i.Deaths) > 0 {
		died, key = i.Deaths[0], strings.Join(i.Deaths[0].Keys, " ")
	}
	return []string{"SEQ", "DIED", "REASON", "QUEUE", "EXCHANGE?", "KEY?", "TYPE?", "REPLAYS?", "MESSAGE-ID", "BODY"},
		[]string{strconv.FormatUint(uint64(i.Seq), 10), at(died.Time), died.Reason, died.Queue, died.Exchange, key, i.text("type"), fmt.Sprint(i.Replays), i.ID(), i.Text()}
}

// Whole is a dead letter with its whole body, as the API answers.
type Whole struct {
	Item
	QueueID  uint64   `json:"queue_id,string"` // of the queue that was read; differs if the queue is deleted and declared again
	Unpacked *Decoded `json:"unpacked,omitempty"`
}

// Decoded is a body without its content encoding, as the API answers.
type Decoded struct {
	Payload   string  `json:"payload"`
	Encoding  string  `json:"payload_encoding"` // string or base64
	Truncated bool    `json:"truncated"`        // there is more
	Error     *string `json:"error"`            // why it cannot be unpacked; null: it can
}
