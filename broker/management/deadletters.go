package management

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"curfew/broker/management/rest"

	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/broker/queue"
)

// RabbitMQ has nothing like these: see package broker/deadletters.
var deadLetterRoutes = []route{
	{method: get, path: "/api/curfew/deadletters", op: operate.ListDeadLetterQueues, handle: listDeadLetterQueues, doc: deadLetterQueuesDoc},
	{method: get, path: "/api/curfew/deadletters/{vhost}", op: operate.ListDeadLetterQueues, handle: listDeadLetterQueues, doc: deadLetterQueuesDoc},
	{method: post, path: "/api/curfew/deadletters/{vhost}/{queue}/groups", op: operate.SearchDeadLetters, handle: groupDeadLetters, doc: groupsDoc},
	{method: post, path: "/api/curfew/deadletters/{vhost}/{queue}/search", op: operate.SearchDeadLetters, handle: searchDeadLetters, doc: searchDoc},
	{method: post, path: "/api/curfew/deadletters/{vhost}/{queue}/replay", op: operate.StartReplay, handle: replayDeadLetters, doc: replayDoc},
	{method: post, path: "/api/curfew/deadletters/{vhost}/{queue}/purge", op: operate.PurgeDeadLetters, handle: purgeDeadLetters, doc: purgeDoc},
	{method: post, path: "/api/curfew/deadletters/{vhost}/{queue}/export", op: operate.ExportDeadLetters, handle: exportDeadLetters, doc: exportDoc},
	{method: post, path: "/api/curfew/deadletters/{vhost}/{queue}/import", op: operate.ImportDeadLetters, handle: importDeadLetters, body: maxImport, doc: importDoc},
	{method: post, path: "/api/curfew/deadletters/{vhost}/{queue}/draft", op: operate.SearchDeadLetters, handle: draftDeadLetter, doc: draftDoc},
	{method: post, path: "/api/curfew/deadletters/{vhost}/{queue}/resend", op: operate.ResendDeadLetter, handle: resendDeadLetter, body: maxDefinitions, weight: publishWeight, doc: resendDoc},
	{method: get, path: "/api/curfew/deadletters/{vhost}/{queue}/messages/{seq}", op: operate.SearchDeadLetters, handle: getDeadLetter, doc: deadLetterDoc},
	{method: get, path: "/api/curfew/deadletters/{vhost}/{queue}/filters", op: operate.SearchDeadLetters, handle: listFilters, doc: filtersDoc},
	{method: put, path: "/api/curfew/deadletters/{vhost}/{queue}/filters/{name}", op: operate.SaveFilter, handle: putFilter, doc: saveFilterDoc},
	{method: remove, path: "/api/curfew/deadletters/{vhost}/{queue}/filters/{name}", op: operate.DeleteFilter, handle: deleteFilter, doc: deleteFilterDoc},
	{method: get, path: "/api/curfew/replays", op: operate.ListReplays, handle: listReplays, doc: replaysDoc},
	{method: get, path: "/api/curfew/replays/{run}", op: operate.SeeReplay, handle: getReplay, doc: replayRunDoc},
	{method: remove, path: "/api/curfew/replays/{run}", op: operate.CancelReplay, handle: cancelReplay, doc: cancelReplayDoc},
	{method: post, path: "/api/curfew/replays/{run}/resume", op: operate.ResumeReplay, handle: resumeReplay, doc: resumeReplayDoc},
}

var (
	deadLetterQueuesDoc = rest.Doc{ID: "listDeadLetterQueues", Summary: "Queues that dead letters go to or are in, the fullest first", Answer: []deadletters.Queue{}}
	groupsDoc           = rest.Doc{ID: "groupDeadLetters", Summary: "Dead letters by what they died of, the largest group first", Text: "Only ready messages. Of the body only `filter` counts.",
		Body: lettersRequest{}, Answer: []deadletters.Group{}}
	searchDoc = rest.Doc{ID: "searchDeadLetters", Summary: "Dead letters that a filter matches", Text: "`next` of the answer goes into `after` of the next request; it is 0 at the end.",
		Body: lettersRequest{}, Answer: letterPage{}}
	replayDoc = rest.Doc{ID: "startReplay", Summary: "Start to replay the dead letters that a filter matches",
		Text: "The answer is the replay as it begins; it goes on by itself. With `dry_run` it only counts, and says where the messages would go.",
		Body: lettersRequest{}, Answer: deadletters.Replay{}}
	purgeDoc = rest.Doc{ID: "purgeDeadLetters", Summary: "Delete the dead letters that a filter matches",
		Text: "`confirm` has to be their number. Otherwise nothing is deleted: the answer is 409, with the number in `matched`. " +
			"Its `position` makes a second request about the same messages.",
		Body: lettersRequest{}, Answer: deletedCount{}}
	exportDoc = rest.Doc{ID: "exportDeadLetters", Summary: "The dead letters that a filter matches, a line of JSON for each", Body: lettersRequest{}, Answer: "",
		Text: "Nothing of a message is lost in its line. An answer that is not whole ends with a broken connection.", Kinds: []string{"application/jsonl"}}
	importDoc = rest.Doc{ID: "importDeadLetters", Summary: "Publish the lines of an exported file into the queue", Body: "", BodyKind: "application/jsonl", Answer: importedCount{},
		Text: "It stops at a line that cannot be read (400), or when publishers have to wait (503). Then `imported` is how many messages were before that line."}
	draftDoc = rest.Doc{ID: "draftDeadLetter", Summary: "What a replay would publish of one dead letter, for a person to change", Text: "Of the body only `seq` counts.",
		Body: draft{}, Answer: draft{}}
	resendDoc = rest.Doc{ID: "resendDeadLetter", Summary: "Publish a changed draft, and take the dead letter out of its queue", Body: draft{}, Answer: deadletters.Review{}, Empty: true,
		Text: "204: it is done. With `dry_run` nothing is done, and the answer 200 says what would be. 409: the message stays where it is, or has changed."}
	deadLetterDoc = rest.Doc{ID: "getDeadLetter", Summary: "One message with its whole body, up to 16 MiB", Answer: wholeLetter{},
		Text: "`unpacked` has what is behind the body's content encoding, if it has one."}
	filtersDoc    = rest.Doc{ID: "listFilters", Summary: "The filters that are saved for a queue, by name", Answer: []operate.SavedFilter{}}
	saveFilterDoc = rest.Doc{ID: "saveFilter", Summary: "Save a filter under a name", Body: operate.SavedFilter{},
		Text: "`query` is a filter as text, such as `reason=expired&since=2h`; only it counts."}
	deleteFilterDoc = rest.Doc{ID: "deleteFilter", Summary: "Delete a saved filter"}
	replaysDoc      = rest.Doc{ID: "listReplays", Summary: "Replays that run or have ended", Text: "One's own; administrators see all.", Answer: []deadletters.Replay{}}
	replayRunDoc    = rest.Doc{ID: "getReplay", Summary: "One replay as it is now", Answer: deadletters.Replay{}}
	cancelReplayDoc = rest.Doc{ID: "cancelReplay", Summary: "Stop a replay", Answer: deadletters.Replay{}}
	resumeReplayDoc = rest.Doc{ID: "resumeReplay", Summary: "Go on with a replay that was stopped or has failed", Answer: deadletters.Replay{}}
)

// letterPage is a page of dead letters.
type letterPage struct {
	Items []letter  `json:"items"`
	Next  queue.Seq `json:"next"` // goes into after; 0: there are no more
}

// letter is a dead letter: the fields of letterObject.
type letter struct {
	Seq         queue.Seq           `json:"seq"`   // the message's number in the queue
	State       string              `json:"state"` // ready or unacked
	Persistent  bool                `json:"persistent"`
	Redelivered bool                `json:"redelivered"`
	Deadline    *int64              `json:"deadline"`    // Unix ms; null: it has none
	Exchange    string              `json:"exchange"`    // by which it came here
	RoutingKey  string              `json:"routing_key"` // likewise
	Properties  object              `json:"properties"`  // those that it has, by RabbitMQ's names
	Bytes       int                 `json:"payload_bytes"`
	Payload     string              `json:"payload"`          // the body, or its beginning
	Encoding    string              `json:"payload_encoding"` // string or base64
	Deaths      []deadletters.Death `json:"deaths"`           // the latest first
	Replays     int64               `json:"replays"`          // how often it was replayed
	Run         string              `json:"replay_run"`       // that replayed it last; empty: none did
}

// wholeLetter is a letter with its whole body.
type wholeLetter struct {
	letter
	QueueID  string    `json:"queue_id"` // of the queue that was looked at: another one of the name has another
	Unpacked *unpacked `json:"unpacked,omitempty"`
}

// unpacked is what is behind the content encoding of a body.
type unpacked struct {
	Payload   string  `json:"payload"`
	Encoding  string  `json:"payload_encoding"` // string or base64
	Truncated bool    `json:"truncated"`        // there is more
	Error     *string `json:"error"`            // why it cannot be unpacked; null: it can
}

// deletedCount is how many messages were deleted.
type deletedCount struct {
	Deleted int `json:"deleted"`
}

// importedCount is how many messages were published.
type importedCount struct {
	Imported int `json:"imported"`
}

const (
	// maxImport bounds an imported file; larger ones go in parts.
	maxImport = 4 << 30
	// longRequest is how long a look at a large queue, or a file, may take.
	longRequest = 30 * time.Minute
)

// lettersRequest is the body of requests about the dead letters of a queue.
type lettersRequest struct {
	Filter   deadletters.Filter `json:"filter"`
	After    queue.Seq          `json:"after"`    // of a search: next of the answer before
	Newest   bool               `json:"newest"`   // of a search: the newest first
	Count    int                `json:"count"`    // of a search: 1 to 1000; 10 if it is missing
	Truncate *int               `json:"truncate"` // of a search: bytes of each body; 4096 if it is missing
	Encoding string             `json:"encoding"` // of a search: base64, or auto: as text where the body is UTF-8; auto if it is missing
	Confirm  *int               `json:"confirm"`  // of a purge: how many messages it is about

	// Position is that of an earlier answer: what has arrived since is left alone.
	Position deadletters.Position `json:"position"`
	deadletters.Options
	DryRun bool `json:"dry_run"` // of a replay: only count
}

// readLetters reads the body. The answer may take long.
func readLetters(r *request) (*lettersRequest, operate.DeadLetters, error) {
	l := &lettersRequest{Count: peekCount}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(l); err != nil && !errors.Is(err, io.EOF) {
		return nil, operate.DeadLetters{}, rest.Bad(err.Error())
	}
	r.takeTime()
	return l, operate.DeadLetters{Queue: r.queueNamed(), Filter: l.Filter}, nil
}

// takeTime lets the request last longer than others may.
func (r *request) takeTime() {
	c, until := http.NewResponseController(r.W), time.Now().Add(longRequest)
	_ = c.SetWriteDeadline(until) // a writer that has none needs none
	_ = c.SetReadDeadline(until)
}

func listDeadLetterQueues(r *request) error {
	list, err := r.api.Operations.ListDeadLetterQueues(r.Context(), r.Actor, r.Param("vhost"))
	if err != nil {
		return err
	}
	return r.Answer(list)
}

func groupDeadLetters(r *request) error {
	_, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	groups, _, err := r.api.Operations.GroupDeadLetters(r.Context(), r.Actor, letters)
	if err != nil {
		return err
	}
	return r.Answer(groups)
}

// searchDeadLetters answers {"items": [...], "next": n}: next goes into after, 0 at the
// end.
func searchDeadLetters(r *request) error {
	l, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	search := operate.SearchRequest{DeadLetters: letters, After: l.After, Newest: l.Newest, Count: l.Count, BodyBytes: peekBytes}
	if l.Truncate != nil {
		search.BodyBytes = *l.Truncate
	}
	found, next, err := r.api.Operations.SearchDeadLetters(r.Context(), r.Actor, search)
	if err != nil {
		return err
	}
	items := []object{}
	for i := range found {
		items = append(items, letterObject(&found[i], l.Encoding))
	}
	return r.Answer(object{"items": items, "next": next})
}

// letterObject is a message as peek shows it, with its history.
func letterObject(l *operate.DeadLetter, encoding string) object {
	o := messageObject(l.Exchange, l.RoutingKey, l.Redelivered, l.Properties.Append(nil), l.Body, l.BodyBytes, &fetch{encoding: encoding, truncate: -1})
	o["seq"], o["state"], o["persistent"], o["deadline"] = uint64(l.Seq), l.State.String(), l.Persistent, nil
	if l.Deadline != 0 {
		o["deadline"] = l.DeadlineMillis
	}
	o["deaths"], o["replays"], o["replay_run"] = l.Deaths, l.Replays, l.Run
	if l.Deaths == nil {
		o["deaths"] = []any{}
	}
	return o
}

// maxUnpacked is how much of a body is unpacked for an answer, in bytes.
const maxUnpacked = 16 << 20

// getDeadLetter answers with one message, its whole body up to 16 MiB and, in "unpacked", what is behind its content-encoding.
func getDeadLetter(r *request) error {
	seq, err := strconv.ParseUint(r.Param("seq"), 10, 64)
	if err != nil {
		return operate.ErrMessageGone
	}
	l, err := r.api.Operations.DeadLetter(r.Context(), r.Actor, r.queueNamed(), operate.Seq(seq), 0)
	if err == nil {
		err = r.Account.Take(bytesOf(&l, r.Account.Limit()))
	}
	if err == nil {
		l, err = r.api.Operations.DeadLetter(r.Context(), r.Actor, r.queueNamed(), operate.Seq(seq), maxUnpacked)
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
	text, encoding := string(plain), "string"
	if !utf8.Valid(plain) {
		text, encoding = base64.StdEncoding.EncodeToString(plain), "base64"
	}
	behind := unpacked{Payload: text, Encoding: encoding, Truncated: more}
	if err != nil {
		behind.Error = new(err.Error())
	}
	o["unpacked"] = behind
	return r.Answer(o)
}

// copiesOfBody is how often an answer holds a body: as it is, as text and in the answer.
const copiesOfBody = 4

// bytesOf is the memory that getDeadLetter takes, at most half of what there is: how much a body unpacks to, nobody knows before.
func bytesOf(l *operate.DeadLetter, limit int64) int64 {
	n := int64(min(l.BodyBytes, maxUnpacked))
	if deadletters.IsPacked(l.Properties.ContentEncoding) {
		n += maxUnpacked
	}
	if n *= copiesOfBody; limit > 0 {
		n = min(n, limit/2)
	}
	return n
}

func listFilters(r *request) error {
	list, err := r.api.Operations.ListFilters(r.Context(), r.Actor, r.queueNamed())
	if err != nil {
		return err
	}
	return r.Answer(list)
}

// putFilter saves {"query": "reason=expired&since=2h"} under a name.
func putFilter(r *request) error {
	var f operate.SavedFilter
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return rest.Bad(err.Error())
	}
	f.Name = r.Param("name")
	if err := r.api.Operations.SaveFilter(r.Context(), r.Actor, r.queueNamed(), f); err != nil {
		return err
	}
	return r.Done()
}

func deleteFilter(r *request) error {
	if err := r.api.Operations.DeleteFilter(r.Context(), r.Actor, r.queueNamed(), r.Param("name")); err != nil {
		return err
	}
	return r.Done()
}

func replayDeadLetters(r *request) error {
	l, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	replay, err := r.api.Operations.StartReplay(r.Context(), r.Actor, deadletters.Request{
		VHost: letters.Queue.VHost, Queue: letters.Queue.Name, Filter: l.Filter, Options: l.Options, DryRun: l.DryRun, Position: l.Position,
	})
	return answerReplay(r, replay, err)
}

func answerReplay(r *request, replay deadletters.Replay, err error) error {
	if err != nil {
		return err
	}
	return r.Answer(replay)
}

func listReplays(r *request) error {
	list, err := r.api.Operations.ListReplays(r.Context(), r.Actor)
	if err != nil {
		return err
	}
	return r.Answer(list)
}

func getReplay(r *request) error {
	replay, err := r.api.Operations.Replay(r.Context(), r.Actor, r.Param("run"))
	return answerReplay(r, replay, err)
}

func cancelReplay(r *request) error {
	replay, err := r.api.Operations.CancelReplay(r.Context(), r.Actor, r.Param("run"))
	return answerReplay(r, replay, err)
}

func resumeReplay(r *request) error {
	replay, err := r.api.Operations.ResumeReplay(r.Context(), r.Actor, r.Param("run"))
	return answerReplay(r, replay, err)
}

// purgeDeadLetters deletes what the filter matches, if confirm says how many that is.
// Otherwise it answers 409 with the number in "matched", and in "position" what makes a second request about the same messages.
func purgeDeadLetters(r *request) error {
	l, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	c := deadletters.Confirmation{Messages: -1, Position: l.Position}
	if l.Confirm != nil {
		c.Messages = *l.Confirm
	}
	deleted, err := r.api.Operations.PurgeDeadLetters(r.Context(), r.Actor, letters, c)
	if u, ok := errors.AsType[*deadletters.Unconfirmed](err); ok {
		rest.AnswerJSON(r.W, http.StatusConflict, object{"error": "unconfirmed", "reason": u.Error(), "matched": u.Matched, "position": u.Position})
		return nil
	}
	if err != nil {
		return err
	}
	return r.Answer(deletedCount{deleted})
}

// download sends the type of its lines with the first of them.
type download struct {
	http.ResponseWriter
	begun bool
}

// Write implements io.Writer.
func (d *download) Write(b []byte) (int, error) {
	if !d.begun {
		d.begun = true
		d.Header().Set("Content-Type", "application/jsonl")
	}
	return d.ResponseWriter.Write(b)
}

// exportDeadLetters answers with a line of JSON for each message.
func exportDeadLetters(r *request) error {
	_, letters, err := readLetters(r)
	if err != nil {
		return err
	}
	file := &download{ResponseWriter: r.W}
	switch err := r.api.Operations.ExportDeadLetters(r.Context(), r.Actor, letters, file); {
	case err != nil && !file.begun:
		return err
	case err != nil:
		panic(http.ErrAbortHandler) // what was sent is not all there is
	case !file.begun:
		_, _ = file.Write(nil) // an empty file; a client that is gone needs none
	}
	return nil
}

// importDeadLetters publishes the lines of the body into the queue.
func importDeadLetters(r *request) error {
	r.takeTime()
	n, err := r.api.Operations.ImportDeadLetters(r.Context(), r.Actor, r.queueNamed(), r.Body)
	if at, ok := errors.AsType[*deadletters.ImportError](err); ok {
		status, kind := http.StatusBadRequest, "bad_request"
		if errors.Is(err, deadletters.ErrBlocked) {
			status, kind = http.StatusServiceUnavailable, "service_unavailable"
		}
		rest.AnswerJSON(r.W, status, object{"error": kind, "reason": at.Error(), "imported": n})
		return nil
	}
	if err != nil {
		return err
	}
	return r.Answer(importedCount{n})
}

// draft is what a replay would publish of a dead letter, for a person to change.
type draft struct {
	Seq        operate.Seq     `json:"seq"`             // the dead letter's number in the queue
	QueueID    uint64          `json:"queue_id,string"` // of the queue that was looked at; absent: any of the name
	Exchange   string          `json:"exchange"`
	RoutingKey string          `json:"routing_key"`
	Properties json.RawMessage `json:"properties"` // as in an exported file
	Payload    string          `json:"payload"`
	Encoding   string          `json:"payload_encoding"`   // string or base64
	Unpacked   bool            `json:"unpacked,omitempty"` // the payload is the text behind the content-encoding, and is packed again
	DryRun     bool            `json:"dry_run,omitempty"`  // send nothing, and review the draft
}

func readDraft(r *request) (d draft, err error) {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return d, rest.Bad(err.Error())
	}
	return d, nil
}

// draftDeadLetter answers with the draft of the message that seq names.
func draftDeadLetter(r *request) error {
	asked, err := readDraft(r)
	if err != nil {
		return err
	}
	d, err := r.api.Operations.DraftDeadLetter(r.Context(), r.Actor, r.queueNamed(), asked.Seq)
	if err != nil {
		return err
	}
	answer := draft{Seq: asked.Seq, QueueID: d.QueueID, Exchange: d.Exchange, RoutingKey: d.RoutingKey, Properties: d.Properties, Payload: string(d.Body), Encoding: "string", Unpacked: d.Unpacked}
	if !utf8.Valid(d.Body) {
		answer.Payload, answer.Encoding = base64.StdEncoding.EncodeToString(d.Body), "base64"
	}
	return r.Answer(answer)
}

// resendDeadLetter publishes what became of a draft, and takes the dead letter out of its queue. A dry run answers with the review of the draft.
func resendDeadLetter(r *request) error {
	d, err := readDraft(r)
	if err != nil {
		return err
	}
	body, err := payloadOf(d.Payload, d.Encoding)
	if err != nil {
		return err
	}
	changed := operate.Draft{
		QueueID: d.QueueID, Draft: deadletters.Draft{Exchange: d.Exchange, RoutingKey: d.RoutingKey, Properties: d.Properties, Body: body, Unpacked: d.Unpacked},
	}
	if d.DryRun {
		review, err := r.api.Operations.ReviewDraft(r.Context(), r.Actor, r.queueNamed(), d.Seq, changed)
		if err != nil {
			return err
		}
		return r.Answer(review)
	}
	skipped, err := r.api.Operations.ResendDeadLetter(r.Context(), r.Actor, r.queueNamed(), d.Seq, changed)
	if err == nil && skipped != "" {
		err = rest.NewProblem(http.StatusConflict, "skipped", "the message stays where it is: "+string(skipped))
	}
	if err != nil {
		return err
	}
	return r.Done()
}
