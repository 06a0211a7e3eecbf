package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Exchange is where events are published for programs: a topic exchange.
type Exchange interface {
	// Publish publishes one event. It succeeds even if no queue is bound.
	Publish(ctx context.Context, p Publication) error
}

// Publication is an event on its way to an exchange.
type Publication struct {
	// RoutingKey is event.vhost.queue; without a queue, the event alone.
	RoutingKey  string
	ContentType string
	MessageID   string
	Body        []byte
}

// exchangeSink publishes alerts for programs.
type exchangeSink struct {
	named
	exchange Exchange
	source   source
}

// event is an alert as plain JSON.
type event struct {
	Event       string            `json:"event"`
	Alertname   string            `json:"alertname"`
	Status      string            `json:"status"` // firing or resolved
	Severity    string            `json:"severity"`
	Summary     string            `json:"summary"`
	Instance    string            `json:"instance,omitempty"`
	VHost       string            `json:"vhost,omitempty"`
	Queue       string            `json:"queue,omitempty"`
	Action      string            `json:"action,omitempty"`
	Detail      string            `json:"detail,omitempty"`
	Count       int64             `json:"count,omitempty"`
	FirstAt     string            `json:"first_deadline,omitempty"`
	LastAt      string            `json:"last_deadline,omitempty"`
	WorstMillis int64             `json:"worst_lateness_ms"`
	StartsAt    time.Time         `json:"starts_at"`
	EndsAt      *time.Time        `json:"ends_at,omitempty"`
	Fingerprint string            `json:"fingerprint"`
	Links       map[string]string `json:"links,omitempty"`
}

// send publishes a. Its message-id is the same when it is published again.
func (s *exchangeSink) send(ctx context.Context, a *alert) error {
	body, err := json.Marshal(s.source.event(a))
	if err != nil {
		return backoff.Permanent(fmt.Errorf("alert: encode: %w", err))
	}
	id := fmt.Sprintf("%s-%s-%d", a.fingerprint(), a.status(), a.at.UnixNano())
	err = s.exchange.Publish(ctx, Publication{RoutingKey: routingKey(a), ContentType: "application/json", MessageID: id, Body: body})
	if err != nil {
		return fmt.Errorf("alert: publish: %w", err)
	}
	return nil
}

func (s source) event(a *alert) event {
	e := event{
		Event: kinds[a.kind].event, Alertname: a.kind.String(), Status: a.status(), Severity: a.severity(), Summary: a.summary(),
		Instance: s.instance, VHost: a.vhost, Queue: a.queue, Action: a.action, Detail: a.detail,
		Count: a.Count, WorstMillis: a.WorstMillis, StartsAt: a.startsAt.UTC(), Fingerprint: a.fingerprint(), Links: s.pages(a.key),
	}
	if s.externalURL != "" {
		e.Links["curfew"] = s.externalURL
	}
	if a.FirstDeadlineAt != 0 {
		e.FirstAt = stamp(a.FirstDeadlineAt)
	}
	if a.LastDeadlineAt != 0 {
		e.LastAt = stamp(a.LastDeadlineAt)
	}
	if a.resolved() {
		at := a.endsAt.UTC()
		e.EndsAt = &at
	}
	return e
}

// maxRoutingKey is AMQP's limit, in bytes.
const maxRoutingKey = 255

func routingKey(a *alert) string {
	words := []string{kinds[a.kind].event}
	if a.queue != "" {
		words = append(words, a.vhost, a.queue)
	}
	key := strings.Join(words, ".")
	return key[:min(len(key), maxRoutingKey)]
}
