package management

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"curfew/broker/deadletters"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
)

// letterRoutes are those of requests about dead letters.
var letterRoutes = []rest.Route{
	{Method: http.MethodPost, Path: "/api/curfew/deadletters/{vhost}/{queue}/groups", Op: operate.SearchDeadLetters, Handle: group, Doc: groupsDoc},
	{Method: http.MethodPost, Path: "/api/curfew/deadletters/{vhost}/{queue}/search", Op: operate.SearchDeadLetters, Handle: search, Doc: searchDoc},
	{Method: http.MethodPost, Path: "/api/curfew/deadletters/{vhost}/{queue}/export", Op: operate.ExportDeadLetters, Handle: export, Doc: exportDoc},
	{Method: http.MethodPost, Path: "/api/curfew/deadletters/{vhost}/{queue}/import", Op: operate.ImportDeadLetters, Handle: importFile, Body: maxImport, Doc: importDoc},
	{Method: http.MethodPost, Path: "/api/curfew/deadletters/{vhost}/{queue}/draft", Op: operate.SearchDeadLetters, Handle: makeDraft, Doc: draftDoc},
	{Method: http.MethodPost, Path: "/api/curfew/deadletters/{vhost}/{queue}/resend", Op: operate.ResendDeadLetter, Handle: resend, Body: maxDraft, Weight: rest.MessageWeight, Doc: resendDoc},
	{Method: http.MethodGet, Path: "/api/curfew/deadletters/{vhost}/{queue}/messages/{seq}", Op: operate.SearchDeadLetters, Handle: getLetter, Doc: getDoc},
}

var (
	groupsDoc = rest.Doc{ID: "groupDeadLetters", Summary: "Dead letters by what they died of, the largest group first", Text: "Only ready messages are counted. Only `filter` and `by_type` of the body are used.",
		Body: deadletters.Query{}, Answer: []deadletters.Group{}}
	searchDoc = rest.Doc{ID: "searchDeadLetters", Summary: "Dead letters that a filter matches", Text: "Send `next` of the answer as `after` of the next request; it is 0 at the end.",
		Body: deadletters.Query{}, Answer: deadletters.Page{}}
	exportDoc = rest.Doc{ID: "exportDeadLetters", Summary: "The dead letters that a filter matches, a line of JSON for each", Body: deadletters.Query{}, Answer: "",
		Text: "A line has the complete message. If the answer is incomplete, the connection breaks.", Kinds: []string{"application/jsonl"}}
	importDoc = rest.Doc{ID: "importDeadLetters", Summary: "Publish the lines of an exported file into the queue", Body: "", BodyKind: "application/jsonl", Answer: importedCount{}, Accepted: operate.Run{},
		Text: "It stops at a line that cannot be read (400), or when publishers are blocked (503). Then `imported` is the number of messages before that line. " +
			"A client that prefers not to wait gets 202 when the whole file has been read."}
	draftDoc = rest.Doc{ID: "draftDeadLetter", Summary: "What a replay would publish of one dead letter, for a person to change", Text: "Only `seq` of the body is used.",
		Body: draft{}, Answer: draft{}}
	resendDoc = rest.Doc{ID: "resendDeadLetter", Summary: "Publish a changed draft, and take the dead letter out of its queue", Body: draft{}, Answer: deadletters.Review{}, Empty: true,
		Text: "204: it is done. With `dry_run` nothing is done, and the answer 200 says what would happen. 409: the message stays where it is, or has changed."}
	getDoc = rest.Doc{ID: "getDeadLetter", Summary: "One message with its whole body, up to 16 MiB", Answer: deadletters.Whole{},
		Text: "`unpacked` has the body without its content encoding, if it has one."}
)

// The defaults of a search.
const (
	defaultCount     = 10
	defaultBodyBytes = 4096
)

// readLetters reads the body, and lets the request take long.
func readLetters(r *rest.Request) (*deadletters.Query, operate.DeadLetters, error) {
	l := &deadletters.Query{Count: defaultCount}
	decoder := json.NewDecoder(r.HTTP.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(l); err != nil && !errors.Is(err, io.EOF) { // no body means all dead letters
		return nil, operate.DeadLetters{}, rest.Bad(err.Error())
	}
	r.TakeTime()
	return l, operate.DeadLetters{Queue: r.QueueNamed(), Filter: l.Filter.And(deadletters.Filter(r.HTTP.URL.Query().Get("filter"))), ByType: l.ByType, Position: l.Position}, nil
}

func group(r *rest.Request) error {
	_, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	groups, _, err := r.Operations.Letters.Group(r.HTTP.Context(), r.Actor, letters)
	return r.Result(groups, err)
}

func search(r *rest.Request) error {
	l, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	look := deadletters.Look{After: l.After, Newest: l.Newest, Count: l.Count, BodyBytes: defaultBodyBytes, Position: l.Position}
	if l.Truncate != nil {
		look.BodyBytes = *l.Truncate
	}
	found, next, at, err := r.Operations.Letters.Search(r.HTTP.Context(), r.Actor, letters.Queue, letters.Filter, look)
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
	l, at, err := r.Operations.Letters.DeadLetter(r.HTTP.Context(), r.Actor, r.QueueNamed(), operate.Seq(seq), 0)
	if err == nil {
		err = r.Account.Take(bytesOf(&l, r.Account.Budget.Limit))
	}
	if err == nil {
		l, at, err = r.Operations.Letters.DeadLetter(r.HTTP.Context(), r.Actor, r.QueueNamed(), operate.Seq(seq), maxUnpacked)
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

// maxDraft bounds a draft that is sent back, in bytes.
const maxDraft = 10 << 20

// draft is what a replay would publish of a dead letter, for a person to change.
type draft struct {
	Seq        operate.Seq     `json:"seq"`             // the dead letter's number in the queue
	QueueID    uint64          `json:"queue_id,string"` // of the queue that was read; absent: any queue of the name
	Exchange   string          `json:"exchange"`
	RoutingKey string          `json:"routing_key"`
	Properties json.RawMessage `json:"properties"` // as in an exported file
	Payload    string          `json:"payload"`
	Encoding   string          `json:"payload_encoding"`   // string or base64
	Unpacked   bool            `json:"unpacked,omitempty"` // the payload is text without the content-encoding, and is packed again
	DryRun     bool            `json:"dry_run,omitempty"`  // send nothing, and review the draft
}

// makeDraft answers with a draft of the message that seq names.
func makeDraft(r *rest.Request) error {
	var asked draft
	if err := r.ReadJSON(&asked); err != nil {
		return err
	}
	d, err := r.Operations.Letters.Draft(r.HTTP.Context(), r.Actor, r.QueueNamed(), asked.Seq)
	if err != nil {
		return err
	}
	answer := draft{Seq: asked.Seq, QueueID: d.QueueID, Exchange: d.Exchange, RoutingKey: d.RoutingKey, Properties: d.Properties, Unpacked: d.Unpacked}
	answer.Payload, answer.Encoding = messages.TextOf(d.Body)
	return r.Answer(answer)
}

// resend publishes a changed draft, and takes the dead letter out of its queue. A dry run answers with a review of the draft.
func resend(r *rest.Request) error {
	var d draft
	if err := r.ReadJSON(&d); err != nil {
		return err
	}
	body, err := messages.BodyOf(d.Payload, d.Encoding)
	if err != nil {
		return err
	}
	changed := &deadletters.Draft{QueueID: d.QueueID, Exchange: d.Exchange, RoutingKey: d.RoutingKey, Properties: d.Properties, Body: body, Unpacked: d.Unpacked}
	if d.DryRun {
		return r.Result(r.Operations.Letters.Review(r.HTTP.Context(), r.Actor, r.QueueNamed(), d.Seq, changed))
	}
	skipped, err := r.Operations.Letters.Resend(r.HTTP.Context(), r.Actor, r.QueueNamed(), d.Seq, changed)
	if err == nil && skipped != "" {
		err = &rest.Problem{Status: http.StatusConflict, Kind: "skipped", Reason: "the message stays where it is: " + string(skipped)}
	}
	return r.Done(err)
}

// maxImport bounds an imported file, in bytes; larger files must be imported in parts.
const maxImport = 4 << 30

// importedCount is how many messages were published.
type importedCount struct {
	Imported int `json:"imported"`
}

// export answers with a line of JSON for each message.
func export(r *rest.Request) error {
	_, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	begun := false
	err = r.Operations.Letters.Export(r.HTTP.Context(), r.Actor, letters, func() io.Writer {
		begun = true
		r.W.Header().Set("Content-Type", "application/jsonl")
		return r.W
	})
	if err != nil && begun {
		panic(http.ErrAbortHandler) // the answer is incomplete
	}
	return err
}

// importFile publishes the lines of the body into the queue, as they come.
func importFile(r *rest.Request) error {
	r.TakeTime()
	at, upload := r.QueueNamed(), r.Upload()
	return r.Run(operate.ImportDeadLetters, at, func(ctx context.Context) (any, error) {
		n, err := r.Operations.Letters.Import(ctx, r.Actor, at, upload(ctx))
		return importedCount{n}, err
	}, r.Answer)
}
