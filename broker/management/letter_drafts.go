package management

import (
	"encoding/json"
	"net/http"

	"curfew/broker/deadletters"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
)

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
	d, err := r.Operations.DraftDeadLetter(r.Context(), r.Actor, r.QueueNamed(), asked.Seq)
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
	changed := operate.Draft{
		QueueID: d.QueueID, Draft: deadletters.Draft{Exchange: d.Exchange, RoutingKey: d.RoutingKey, Properties: d.Properties, Body: body, Unpacked: d.Unpacked},
	}
	if d.DryRun {
		return r.Result(r.Operations.ReviewDraft(r.Context(), r.Actor, r.QueueNamed(), d.Seq, changed))
	}
	skipped, err := r.Operations.ResendDeadLetter(r.Context(), r.Actor, r.QueueNamed(), d.Seq, changed)
	if err == nil && skipped != "" {
		err = rest.NewProblem(http.StatusConflict, "skipped", "the message stays where it is: "+string(skipped))
	}
	return r.Done(err)
}
