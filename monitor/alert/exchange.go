package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cenkalti/backoff/v5"
)

// Exchange is where events are published for programs: a topic exchange.
type Exchange interface {
	// Publish publishes one event. That nobody is bound is no error.
	Publish(ctx context.Context, p Publication) error
}

// Publication is an event on its way to an exchange.
type Publication struct {
	// RoutingKey is event.vhost.queue; without a queue event.peer, or the event alone.
	RoutingKey  string
	ContentType string
	MessageID   string
	Body        []byte
}

// exchangeSink publishes each alert there is news of for itself, so that a binding
// can choose by queue.
type exchangeSink struct {
	exchange    Exchange
	source      source
	cloudEvents bool
}

func (*exchangeSink) name() string { return "amqp" }

func (s *exchangeSink) send(ctx context.Context, n *notification) error {
	var errs []error
	for i := range n.alerts {
		if a := &n.alerts[i]; a.fresh {
			errs = append(errs, s.publish(ctx, n, a))
		}
	}
	return errors.Join(errs...)
}

func (s *exchangeSink) publish(ctx context.Context, n *notification, a *alert) error {
	e := s.source.alertEvent(a, n.at)
	p := Publication{RoutingKey: routingKey(a), ContentType: "application/json", MessageID: e.ID}
	var err error
	if s.cloudEvents {
		p.ContentType = structuredType
		p.Body, err = json.Marshal(e)
	} else {
		p.Body, err = json.Marshal(e.Data)
	}
	if err != nil {
		return backoff.Permanent(fmt.Errorf("alert: encode: %w", err))
	}
	if err := s.exchange.Publish(ctx, p); err != nil {
		return fmt.Errorf("alert: publish: %w", err)
	}
	return nil
}

// maxRoutingKey is AMQP's limit, in bytes.
const maxRoutingKey = 255

func routingKey(a *alert) string {
	words := []string{kinds[a.kind].event}
	if a.queue != "" {
		words = append(words, a.vhost, a.queue)
	} else if a.peer != "" {
		words = append(words, a.peer)
	}
	key := strings.Join(words, ".")
	return key[:min(len(key), maxRoutingKey)]
}
