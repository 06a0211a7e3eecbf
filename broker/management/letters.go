package management

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"curfew/broker/deadletters"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
)

const lettersPath = "/api/curfew/deadletters/{vhost}/{queue}/"

// letterRoutes are those of requests about dead letters whose bodies or answers are not an operation's.
var letterRoutes = []rest.Route{
	exportRoute(),
	{Method: http.MethodPost, Path: lettersPath + "import", Op: messages.ImportDeadLetters.Name, Handle: importFile, Body: maxImport, Doc: rest.Doc{
		ID: "importDeadLetters", Summary: "Publish the lines of an exported file into the queue", Body: "", BodyKind: jsonLines, Answer: messages.Imported{}, Accepted: operate.Run{},
		Text: "It stops at a line that cannot be read (400), or when publishers are blocked (503). Then `imported` is the number of messages before that line. " +
			"A client that prefers not to wait gets 202 when the whole file has been read."}},
	{Method: http.MethodPost, Path: lettersPath + "draft", Op: messages.DraftDeadLetter.Name, Handle: makeDraft, Doc: rest.Doc{
		ID: "draftDeadLetter", Summary: "What a replay would publish of one dead letter, for a person to change", Text: "Only `seq` of the body is used.", Body: draft{}, Answer: draft{}}},
	{Method: http.MethodPost, Path: lettersPath + "resend", Op: messages.ResendDeadLetter.Name, Handle: resend, Body: maxDraft, Weight: rest.MessageWeight, Doc: rest.Doc{
		ID: "resendDeadLetter", Summary: "Publish a changed draft, and take the dead letter out of its queue", Body: draft{}, Answer: deadletters.Review{}, Empty: true,
		Text: "204: it is done. With `dry_run` nothing is done, and the answer 200 says what would happen. 409: the message stays where it is, or has changed."}},
}

const (
	jsonLines = "application/jsonl"
	maxImport = 4 << 30  // of an imported file, in bytes; larger files must be imported in parts
	maxDraft  = 10 << 20 // of a draft that is sent back
)

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
	d, err := messages.DraftDeadLetter.Do(r.HTTP.Context(), r.Operations, r.Actor, messages.Letter{VHost: r.Param("vhost"), Queue: r.Param("queue"), Seq: messages.Number(asked.Seq)})
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
	done, err := messages.ResendDeadLetter.Do(r.HTTP.Context(), r.Operations, r.Actor, messages.ChangedLetter{VHost: r.Param("vhost"), Queue: r.Param("queue"), Seq: d.Seq, DryRun: d.DryRun,
		Draft: &deadletters.Draft{QueueID: d.QueueID, Exchange: d.Exchange, RoutingKey: d.RoutingKey, Properties: d.Properties, Body: body, Unpacked: d.Unpacked}})
	switch {
	case err == nil && d.DryRun:
		return r.Answer(done)
	case err == nil && done.Skipped != "":
		err = &rest.Problem{Status: http.StatusConflict, Kind: "skipped", Reason: "the message stays where it is: " + string(done.Skipped)}
	}
	return r.Done(err)
}

// exportRoute answers with a line of JSON for each message.
func exportRoute() rest.Route {
	route := rest.Served(messages.ExportDeadLetters.Op, http.MethodPost+" "+lettersPath+"export", func(r *rest.Request, request any) error {
		letters, begun := request.(messages.DeadLetters), false
		letters.Begin = func() io.Writer {
			begun = true
			r.W.Header().Set("Content-Type", jsonLines)
			return r.W
		}
		_, err := messages.ExportDeadLetters.Do(r.HTTP.Context(), r.Operations, r.Actor, letters)
		if err != nil && begun {
			panic(http.ErrAbortHandler) // the answer is incomplete
		}
		return err
	})
	route.Doc.Answer, route.Doc.Kinds = "", []string{jsonLines}
	return route
}

// importFile publishes the lines of the body into the queue, as they come.
func importFile(r *rest.Request) error {
	r.TakeTime()
	at, upload := r.QueueNamed(), r.Upload()
	return r.Run(messages.ImportDeadLetters.Name, at, func(ctx context.Context) (any, error) {
		return messages.ImportDeadLetters.Do(ctx, r.Operations, r.Actor, messages.LettersFile{VHost: at.VHost, Queue: at.Name, Lines: upload(ctx)})
	}, r.Answer)
}
