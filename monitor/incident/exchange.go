package incident

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Publication is an event on its way to an exchange.
type Publication struct {
	// RoutingKey is event.vhost.queue; without a queue, the event alone.
	RoutingKey  string
	ContentType string
	MessageID   string
	Body        []byte
}

// exchangeSink publishes alerts for programs, with Options.Publish.
type exchangeSink func(context.Context, Publication) error

// event is a notification as plain JSON: the incident, and whether it begins or is over.
type event struct {
	Event    string `json:"event"`  // the condition
	Status   string `json:"status"` // firing or resolved
	Severity string `json:"severity"`
	Text     string `json:"text"`
	Instance string `json:"instance,omitempty"`
	VHost    string `json:"vhost,omitempty"` // of the worst queue
	Queue    string `json:"queue,omitempty"`
	Action   string `json:"action,omitempty"`
	Incident
	Links map[string]string `json:"links,omitempty"`
}

// send publishes a. Its message-id is the same when it is published again.
func (s exchangeSink) send(ctx context.Context, a *notice) error {
	e := event{
		Event: a.Condition, Status: a.status(), Severity: a.severity(), Text: a.text(), Instance: a.source.instance, Action: a.worst.Action,
		Incident: a.Incident, Links: a.links(),
	}
	key := a.Condition
	if len(a.Worst) > 0 {
		e.VHost, e.Queue = a.Worst[0].VHost, a.Worst[0].Queue
		key = strings.Join([]string{key, e.VHost, e.Queue}, ".")
	}
	id := fmt.Sprintf("%s-%s-%d", a.ID, a.status(), a.at.UnixNano())
	err := s(ctx, Publication{RoutingKey: key[:min(len(key), maxRoutingKey)], ContentType: "application/json", MessageID: id, Body: encode(e)})
	if err != nil {
		return fmt.Errorf("incident: publish: %w", err)
	}
	return nil
}

// encode is v, of whose types none can fail, as JSON. Commands stand in it as they are to be typed.
func encode(v any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// maxRoutingKey is AMQP's limit, in bytes.
const maxRoutingKey = 255
