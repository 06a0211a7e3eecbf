package messages

import (
	"context"
	"io"
	"strconv"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/broker/queue"
)

// reads is the rule of operations on the dead letters of a queue.
var reads = operate.Rule{Role: operate.Management, Read: operate.Always}

// DeadLetters selects dead letters of a queue, and says what is shown of them.
type DeadLetters struct {
	VHost    string               `json:"vhost"`
	Queue    string               `json:"queue"`
	Filter   deadletters.Filter   `json:"filter" is:"filter" doc:"an expression, such as reason == \"expired\"; it may stand in the address as well, as ?filter="`
	ByType   bool                 `json:"by_type" help:"count those of different message types apart (the property type)" doc:"of groups: those of different message types apart"`
	After    queue.Seq            `json:"after" help:"continue after the message with this number" doc:"of a search: next of the previous answer"`
	Newest   bool                 `json:"newest" help:"the newest first" doc:"of a search: the newest first"`
	Count    int                  `json:"count" flag:"count,n" default:"10" help:"the most messages" doc:"of a search: 1 to 1000; 10 if it is missing"`
	Truncate int                  `json:"truncate" is:"shown" default:"4096" start:"200" help:"the most bytes of each body; with -o json the whole body unless this is set" doc:"of a search: bytes of each body; 4096 if it is missing"`
	Encoding string               `json:"encoding" hide:"command" doc:"of a search: base64, or auto: as text where the body is UTF-8; auto if it is missing"`
	Position deadletters.Position `json:"position" hide:"command" doc:"the one from an earlier answer: messages that arrived after it are left alone, and ago in the filter counts from then"`
	Begin    func() io.Writer     // of an export: called once, before the first line, for where to write
}

// position is where the queue is at present, unless the request has a position.
func (r *DeadLetters) position(c *operate.Call, q *broker.Queue) deadletters.Position {
	if r.Position.IsZero() {
		return deadletters.PositionOf(q, now(c))
	}
	return r.Position
}

// now is the time by the clock that deadlines are shown by.
func now(c *operate.Call) time.Time { return time.UnixMilli(c.Broker.UnixMillis(c.Broker.Now())) }

const (
	// MaxSearchCount is how many dead letters one answer has at most, and maxAnswer how many bytes of their bodies.
	MaxSearchCount = 1000
	maxAnswer      = 128 << 20
	// maxDraft bounds a body that a person edits, and maxUnpacked how much is unpacked for an answer, in bytes.
	maxDraft    = 4 << 20
	maxUnpacked = 16 << 20
)

// GroupDeadLetters counts dead letters by what they died of, the largest group first. When its context ends it returns the groups of the newest, with the
// context's error.
var GroupDeadLetters = operate.Define(operate.Op{
	Name: "group_dead_letters", Title: "Count a queue's dead letters by reason, queue, exchange and age, and by message type", Rule: reads, Quiet: true, Slow: true, Watched: true,
	Text: "The largest group comes first. Only ready messages are counted. Only `filter` and `by_type` of the body are used.", Routes: []string{"POST /api/curfew/deadletters/{vhost}/{queue}/groups"},
	Command: "dlq groups <queue>", Flags: []string{"filter", "by_type"}, Page: operate.Page{Empty: "no dead letter in {queue} in virtual host {vhost} matches"},
}, func(ctx context.Context, c *operate.Call, r DeadLetters) (deadletters.GroupList, error) {
	q, err := c.Queue(r.Queue)
	if err != nil {
		return nil, err
	}
	list, _, err := deadletters.Groups(ctx, q, r.Filter, r.ByType, now(c))
	return list, err
})

// SearchDeadLetters returns dead letters that a filter matches. When its context ends it returns what it has found, with the context's error.
var SearchDeadLetters = operate.Define(operate.Op{
	Name: "search_dead_letters", Title: "Show the dead letters that the filter selects; removes nothing", Rule: reads, Quiet: true, Slow: true, Watched: true,
	Text: "Send `next` of the answer as `after` of the next request; it is 0 at the end.", Routes: []string{"POST /api/curfew/deadletters/{vhost}/{queue}/search"},
	Command: "dlq search <queue>", Flags: []string{"filter", "count", "newest", "after", "truncate"}, Starts: map[string]string{"count": "100"},
	Also: []operate.Way{{Command: "dlq peek <queue>", Title: "Show a queue's first messages with their history; removes nothing", Flags: []string{"count", "newest", "after", "truncate"}}},
}, func(ctx context.Context, c *operate.Call, r DeadLetters) (page deadletters.Page, err error) {
	if r.Count < 1 || r.Count > MaxSearchCount {
		return page, operate.OutOfRange("count", int64(r.Count))
	}
	q, err := c.Queue(r.Queue)
	if err != nil {
		return page, err
	}
	look := deadletters.Look{After: r.After, Newest: r.Newest, Count: r.Count, BodyBytes: min(max(r.Truncate, 0), maxAnswer/r.Count), Position: r.position(c, q)}
	found, next, err := deadletters.Search(ctx, q, r.Filter, look)
	page = deadletters.Page{Items: make([]deadletters.Item, len(found)), Next: next, Position: look.Position}
	for i := range found {
		page.Items[i] = itemOf(c, &found[i], r.Encoding)
	}
	return page, err
})

// itemOf is a message in the form of a peek, with its history.
func itemOf(c *operate.Call, l *deadletters.Letter, encoding string) deadletters.Item {
	i := deadletters.Item{Queued: QueuedOf(c.Broker, &l.Browsed, encoding), Deaths: append([]deadletters.Death{}, l.Deaths...), Replays: l.Replays, ReplayID: l.ReplayID}
	if c.Actor.Face == operate.Dashboard { // others have no use for a second copy of the body
		i.Letter = *l
	}
	return i
}

// Number is a message's number in its queue.
type Number queue.Seq

// UnmarshalText implements encoding.TextUnmarshaler. Any other text than a number becomes 0, which no message has.
func (n *Number) UnmarshalText(text []byte) error {
	seq, _ := strconv.ParseUint(string(text), 10, 64)
	*n = Number(seq)
	return nil
}

// Letter names a message in a queue.
type Letter struct {
	VHost string `json:"vhost"`
	Queue string `json:"queue"`
	Seq   Number `json:"seq"`
}

// GetDeadLetter returns one message, ready or unacked. Error: operate.ErrMessageGone among others.
var GetDeadLetter = operate.Define(operate.Op{
	Name: "get_dead_letter", Title: "One message with its whole body, up to 16 MiB", Rule: reads, Quiet: true,
	Text: "`unpacked` has the body without its content encoding, if it has one.", Routes: []string{"GET /api/curfew/deadletters/{vhost}/{queue}/messages/{seq}"},
}, func(ctx context.Context, c *operate.Call, r Letter) (whole deadletters.Whole, err error) {
	q, err := c.Queue(r.Queue)
	if err != nil {
		return whole, err
	}
	at := func(bytes int) (l deadletters.Letter, err error) {
		l, ok := deadletters.At(q, queue.Seq(r.Seq), bytes)
		if !ok {
			err = operate.ErrMessageGone
		}
		return l, err
	}
	whole.QueueID = q.ID
	l, err := at(0)
	packed := deadletters.IsPacked(l.Properties.ContentEncoding)
	if needs := int64(min(l.BodyBytes, maxUnpacked)); err == nil {
		if packed { // its unpacked size is not known before
			needs += maxUnpacked
		}
		err = operate.Take(ctx, operate.CopiesOfBody*needs)
	}
	if err == nil {
		l, err = at(maxUnpacked)
	}
	if err != nil {
		return whole, err
	}
	whole.Item = itemOf(c, &l, "")
	if packed {
		plain, more, err := deadletters.Unpack(l.Properties.ContentEncoding, l.Message.Body, maxUnpacked)
		whole.Unpacked = &deadletters.Decoded{Truncated: more}
		whole.Unpacked.Payload, whole.Unpacked.Encoding = TextOf(plain)
		if err != nil {
			whole.Unpacked.Error = new(err.Error())
		}
	}
	return whole, nil
})

// ExportDeadLetters writes dead letters as lines of JSON to what Begin returns (deadletters.Export).
var ExportDeadLetters = operate.Define(operate.Op{
	Name: "export_dead_letters", Title: "The dead letters that a filter matches, a line of JSON for each", Rule: reads, Quiet: true, Slow: true,
	Text: "A line has the complete message. If the answer is incomplete, the connection breaks.",
}, func(ctx context.Context, c *operate.Call, r DeadLetters) (none operate.None, err error) {
	q, err := c.Queue(r.Queue)
	if err == nil {
		err = deadletters.Export(ctx, q, r.Filter, r.position(c, q), r.Begin)
	}
	return none, err
})

// LettersFile is an exported file for a queue.
type LettersFile struct {
	VHost string `json:"vhost"`
	Queue string `json:"queue"`
	Lines io.Reader
}

// Imported is how many messages were published.
type Imported struct {
	Imported int `json:"imported"`
}

// ImportDeadLetters publishes the lines of an exported file into a queue, as the actor. The result is right also with an error:
// *deadletters.ImportError among others.
var ImportDeadLetters = operate.Define(operate.Op{Name: "import_dead_letters", Rule: reads}, func(ctx context.Context, c *operate.Call, f LettersFile) (done Imported, err error) {
	q, err := c.Queue(f.Queue)
	if err == nil {
		done.Imported, err = deadletters.Import(ctx, c.Broker, c.VHost.NewPublisher(c.Actor.Name), q.Name, f.Lines, func(n int) { operate.Note(ctx)(n, 0) })
	}
	if err == nil {
		err = c.Commit(ctx)
	}
	c.Log(zap.Int("messages", done.Imported))
	return done, err
})

// LetterDraft is a dead letter, by its number in the queue, with what to publish in its place.
type LetterDraft struct {
	Seq queue.Seq `json:"seq" log:"seq" doc:"the dead letter's number in the queue"`
	deadletters.Draft
}

// ChangedLetter is a draft that somebody may have changed.
type ChangedLetter struct {
	VHost string `json:"vhost"`
	Queue string `json:"queue"`
	LetterDraft
	DryRun bool `json:"dry_run" doc:"publish nothing, and say what would happen"`
}

// DraftDeadLetter returns what a replay would publish of a ready message with a body of at most 4 MiB.
var DraftDeadLetter = operate.Define(operate.Op{
	Name: "draft_dead_letter", Title: "What a replay would publish of one dead letter, for a person to change", Rule: reads, Quiet: true,
	Text: "Only `seq` of the body is used.", Routes: []string{"POST /api/curfew/deadletters/{vhost}/{queue}/draft"},
}, func(_ context.Context, c *operate.Call, r ChangedLetter) (d LetterDraft, err error) {
	q, err := c.Queue(r.Queue)
	if err != nil {
		return d, err
	}
	draft, ok, err := deadletters.DraftOf(c.Broker, q, r.Seq)
	if err == nil && !ok {
		err = operate.ErrMessageGone
	}
	if len(draft.Body) > maxDraft {
		return d, &operate.Invalid{Reason: "the body has more than 4 MiB: export the message, change the file and import it"}
	}
	draft.Payload, draft.Encoding = TextOf(draft.Body)
	return LetterDraft{r.Seq, draft}, err
})

// ResendDeadLetter publishes a changed draft, as the actor, and takes the dead letter out of its queue, in one step. A dry run returns what would happen.
// For an error, *deadletters.Stays among others, the message stays. A queue with a different incarnation counts as gone; with QueueID 0 any queue of the
// name does.
var ResendDeadLetter = operate.Define(operate.Op{
	Name: "resend_dead_letter", Title: "Publish a changed draft, and take the dead letter out of its queue", Rule: reads, Body: 10 << 20,
	Text:   "204: it is done. With `dry_run` nothing is done, and the answer 200 says what would happen. 409: the message stays where it is, or has changed.",
	Routes: []string{"POST /api/curfew/deadletters/{vhost}/{queue}/resend"},
}, func(ctx context.Context, c *operate.Call, r ChangedLetter) (*deadletters.Review, error) {
	q, err := c.Queue(r.Queue)
	if err == nil && r.QueueID != 0 && r.QueueID != q.ID {
		err = operate.ErrNotFound
	}
	if err == nil && r.Body == nil { // a form has it as it is
		r.Body, err = BodyOf(r.Payload, r.Encoding)
	}
	if err != nil {
		return nil, err
	}
	p := c.VHost.NewPublisher(c.Actor.Name)
	if r.DryRun {
		review, there, err := deadletters.ReviewOf(c.Broker, p, q, r.Seq, &r.Draft)
		if err == nil && !there {
			err = operate.ErrMessageGone
		}
		return &review, err
	}
	switch skipped, err := deadletters.Resend(c.Broker, p, q, r.Seq, &r.Draft); {
	case err != nil:
		return nil, err
	case skipped == deadletters.SkippedGone:
		return nil, operate.ErrMessageGone
	case skipped != "":
		return nil, &deadletters.Stays{Why: skipped}
	}
	return nil, c.Commit(ctx)
})
