package management

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"curfew/broker/deadletters"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
)

// The defaults of a search.
const (
	defaultCount     = 10
	defaultBodyBytes = 4096
)

// readLetters reads the body, and lets the request take long.
func readLetters(r *rest.Request) (*deadletters.Query, operate.DeadLetters, error) {
	l := &deadletters.Query{Count: defaultCount}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(l); err != nil && !errors.Is(err, io.EOF) { // no body means all dead letters
		return nil, operate.DeadLetters{}, rest.Bad(err.Error())
	}
	r.TakeTime()
	return l, operate.DeadLetters{Queue: r.QueueNamed(), Filter: l.Filter.And(deadletters.Filter(r.URL.Query().Get("filter"))), ByType: l.ByType, Position: l.Position}, nil
}

func group(r *rest.Request) error {
	_, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	groups, _, err := r.Operations.GroupDeadLetters(r.Context(), r.Actor, letters)
	return r.Result(groups, err)
}

func search(r *rest.Request) error {
	l, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	search := operate.SearchRequest{DeadLetters: letters, After: l.After, Newest: l.Newest, Count: l.Count, BodyBytes: defaultBodyBytes}
	if l.Truncate != nil {
		search.BodyBytes = *l.Truncate
	}
	found, next, at, err := r.Operations.SearchDeadLetters(r.Context(), r.Actor, search)
	if err != nil {
		return err
	}
	page := deadletters.Page{Items: make([]deadletters.Item, len(found)), Next: next, Position: at}
	for i := range found {
		page.Items[i] = item(&found[i], l.Encoding)
	}
	return r.Answer(page)
}

// item returns a message in the form of a peek, with its history.
func item(l *operate.DeadLetter, encoding string) deadletters.Item {
	i := deadletters.Item{
		Seq: l.Seq, State: l.State.String(), Persistent: l.Persistent, Redelivered: l.Redelivered, Exchange: l.Exchange, RoutingKey: l.RoutingKey,
		Properties: messages.PropertiesOf(l.Properties.Append(nil)), Bytes: l.BodyBytes, Truncated: len(l.Body) < l.BodyBytes, Deaths: append([]deadletters.Death{}, l.Deaths...), Replays: l.Replays, ReplayID: l.ReplayID,
	}
	if l.Deadline != 0 {
		i.Deadline = &l.DeadlineMillis
	}
	i.Payload, i.Encoding = messages.Encoded(l.Body, encoding)
	return i
}

// maxUnpacked is how many bytes are unpacked for an answer.
const maxUnpacked = 16 << 20

// getLetter answers with one message: its whole body up to 16 MiB and, in "unpacked", the body without its content-encoding.
func getLetter(r *rest.Request) error {
	seq, err := strconv.ParseUint(r.Param("seq"), 10, 64)
	if err != nil {
		return operate.ErrMessageGone
	}
	l, at, err := r.Operations.DeadLetter(r.Context(), r.Actor, r.QueueNamed(), operate.Seq(seq), 0)
	if err == nil {
		err = r.Account.Take(bytesOf(&l, r.Account.Limit()))
	}
	if err == nil {
		l, at, err = r.Operations.DeadLetter(r.Context(), r.Actor, r.QueueNamed(), operate.Seq(seq), maxUnpacked)
	}
	if err != nil {
		return err
	}
	whole := deadletters.Whole{Item: item(&l, ""), QueueID: at.QueueID}
	if deadletters.IsPacked(l.Properties.ContentEncoding) {
		plain, more, err := deadletters.Unpack(l.Properties.ContentEncoding, l.Body, maxUnpacked)
		whole.Unpacked = &deadletters.Decoded{Truncated: more}
		whole.Unpacked.Payload, whole.Unpacked.Encoding = messages.TextOf(plain)
		if err != nil {
			whole.Unpacked.Error = new(err.Error())
		}
	}
	return r.Answer(whole)
}

// bytesOf estimates the memory that getLetter takes, at most half of the budget: the unpacked size of a body is not known before.
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
