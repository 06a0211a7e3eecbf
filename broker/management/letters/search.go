package letters

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"curfew/broker/deadletters"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
)

// letterPage is a page of dead letters.
type letterPage struct {
	Items []letter    `json:"items"`
	Next  operate.Seq `json:"next"` // the value of after for the next page; 0: there is none
}

// letter is a dead letter: the fields of letterObject.
type letter struct {
	Seq         operate.Seq         `json:"seq"`   // the message's number in the queue
	State       string              `json:"state"` // ready or unacked
	Persistent  bool                `json:"persistent"`
	Redelivered bool                `json:"redelivered"`
	Deadline    *int64              `json:"deadline"`    // Unix ms; null: it has none
	Exchange    string              `json:"exchange"`    // by which it came here
	RoutingKey  string              `json:"routing_key"` // with which it came here
	Properties  rest.Object         `json:"properties"`  // the ones that it has, by RabbitMQ's names
	Bytes       int                 `json:"payload_bytes"`
	Payload     string              `json:"payload"`          // the body, or its beginning
	Encoding    string              `json:"payload_encoding"` // string or base64
	Deaths      []deadletters.Death `json:"deaths"`           // the latest first
	Replays     int64               `json:"replays"`          // how often it was replayed
	ReplayID    string              `json:"replay_run"`       // ID of the replay that replayed it last; empty: none did
}

// wholeLetter is a letter with its whole body.
type wholeLetter struct {
	letter
	QueueID  string    `json:"queue_id"` // of the queue that was read; differs if the queue is deleted and declared again
	Unpacked *unpacked `json:"unpacked,omitempty"`
}

// unpacked is a body without its content encoding.
type unpacked struct {
	Payload   string  `json:"payload"`
	Encoding  string  `json:"payload_encoding"` // string or base64
	Truncated bool    `json:"truncated"`        // there is more
	Error     *string `json:"error"`            // why it cannot be unpacked; null: it can
}

// The defaults of a search.
const (
	defaultCount     = 10
	defaultBodyBytes = 4096
)

// lettersRequest is the body of requests about the dead letters of a queue.
type lettersRequest struct {
	Filter   deadletters.Filter `json:"filter"`   // an expression, such as reason == "expired"; it may stand in the address as well, as ?filter=
	After    operate.Seq        `json:"after"`    // of a search: next of the previous answer
	Newest   bool               `json:"newest"`   // of a search: the newest first
	Count    int                `json:"count"`    // of a search: 1 to 1000; 10 if it is missing
	Truncate *int               `json:"truncate"` // of a search: bytes of each body; 4096 if it is missing
	Encoding string             `json:"encoding"` // of a search: base64, or auto: as text where the body is UTF-8; auto if it is missing
	Confirm  *int               `json:"confirm"`  // of a purge: how many messages match

	// Position is the one from an earlier answer: messages that arrived after it are left alone.
	Position deadletters.Position `json:"position"`
	deadletters.Options
	DryRun bool `json:"dry_run"` // of a replay: only count
}

// readLetters reads the body, and lets the request take long.
func readLetters(r *rest.Request) (*lettersRequest, operate.DeadLetters, error) {
	l := &lettersRequest{Count: defaultCount}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(l); err != nil && !errors.Is(err, io.EOF) { // no body means all dead letters
		return nil, operate.DeadLetters{}, rest.Bad(err.Error())
	}
	r.TakeTime()
	return l, operate.DeadLetters{Queue: r.QueueNamed(), Filter: l.Filter.And(deadletters.Filter(r.URL.Query().Get("filter"))), Position: l.Position}, nil
}

func listQueues(r *rest.Request) error {
	return r.Result(r.Operations.ListDeadLetterQueues(r.Context(), r.Actor, r.Param("vhost")))
}

func group(r *rest.Request) error {
	_, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	groups, _, err := r.Operations.GroupDeadLetters(r.Context(), r.Actor, letters)
	return r.Result(groups, err)
}

// search answers {"items": [...], "next": n}: next is the value of after for the next page, 0 at the end.
func search(r *rest.Request) error {
	l, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	search := operate.SearchRequest{DeadLetters: letters, After: l.After, Newest: l.Newest, Count: l.Count, BodyBytes: defaultBodyBytes}
	if l.Truncate != nil {
		search.BodyBytes = *l.Truncate
	}
	found, next, err := r.Operations.SearchDeadLetters(r.Context(), r.Actor, search)
	if err != nil {
		return err
	}
	items := []rest.Object{}
	for i := range found {
		items = append(items, letterObject(&found[i], l.Encoding))
	}
	return r.Answer(rest.Object{"items": items, "next": next})
}

// letterObject returns a message in the form of a peek, with its history.
func letterObject(l *operate.DeadLetter, encoding string) rest.Object {
	m := rest.Message{Exchange: l.Exchange, RoutingKey: l.RoutingKey, Redelivered: l.Redelivered, Properties: l.Properties.Append(nil), Body: l.Body, Bytes: l.BodyBytes}
	o := m.Object(encoding)
	o["seq"], o["state"], o["persistent"], o["deadline"] = uint64(l.Seq), l.State.String(), l.Persistent, nil
	if l.Deadline != 0 {
		o["deadline"] = l.DeadlineMillis
	}
	o["deaths"], o["replays"], o["replay_run"] = l.Deaths, l.Replays, l.ReplayID
	if l.Deaths == nil {
		o["deaths"] = []any{}
	}
	return o
}

// maxUnpacked is how many bytes are unpacked for an answer.
const maxUnpacked = 16 << 20

// get answers with one message: its whole body up to 16 MiB and, in "unpacked", the body without its content-encoding.
func get(r *rest.Request) error {
	seq, err := strconv.ParseUint(r.Param("seq"), 10, 64)
	if err != nil {
		return operate.ErrMessageGone
	}
	l, err := r.Operations.DeadLetter(r.Context(), r.Actor, r.QueueNamed(), operate.Seq(seq), 0)
	if err == nil {
		err = r.Account.Take(bytesOf(&l, r.Account.Limit()))
	}
	if err == nil {
		l, err = r.Operations.DeadLetter(r.Context(), r.Actor, r.QueueNamed(), operate.Seq(seq), maxUnpacked)
	}
	if err != nil {
		return err
	}
	o := letterObject(&l, "")
	o["queue_id"] = strconv.FormatUint(l.QueueID, 10)
	if !deadletters.IsPacked(l.Properties.ContentEncoding) {
		return r.Answer(o)
	}
	plain, more, err := deadletters.Unpack(l.Properties.ContentEncoding, l.Body, maxUnpacked)
	behind := unpacked{Truncated: more}
	behind.Payload, behind.Encoding = rest.TextOf(plain)
	if err != nil {
		behind.Error = new(err.Error())
	}
	o["unpacked"] = behind
	return r.Answer(o)
}

// bytesOf estimates the memory that get takes, at most half of the budget: the unpacked size of a body is not known before.
func bytesOf(l *operate.DeadLetter, limit int64) int64 {
	n := int64(min(l.BodyBytes, maxUnpacked))
	if deadletters.IsPacked(l.Properties.ContentEncoding) {
		n += maxUnpacked
	}
	if n *= operate.CopiesOfBody; limit > 0 {
		n = min(n, limit/2)
	}
	return n
}
