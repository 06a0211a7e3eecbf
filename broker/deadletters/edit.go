package deadletters

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"curfew/broker"
	"curfew/broker/queue"
)

// Draft is what is to be published instead of one dead letter, for a person to read
// and change.
type Draft struct {
	Exchange, RoutingKey string
	Properties           []byte // JSON, as Export writes them
	Body                 []byte
}

// ErrDraft is wrapped by errors about a draft that cannot be sent.
var ErrDraft = errors.New("the draft cannot be sent")

// DraftOf is what a replay to the origin would publish of the ready message seq of q, with
// the time it was published with; one that never died goes to where it came from. False:
// the message is gone, or a consumer holds it.
func DraftOf(b *broker.Broker, q *broker.Queue, seq queue.Seq) (d Draft, ok bool, err error) {
	x, ok := q.Look(seq, -1)
	if !ok || x.State != queue.Ready {
		return d, false, nil
	}
	l, now := letterOf(&x), unixMillis(b)
	o := Options{To: ToOrigin, TTL: TTLFresh, MaxReplays: math.MaxInt64}
	m, left := o.rewrite(&l, "", now)
	if left != "" {
		o.To, o.Exchange, o.Key = ToExchange, l.Exchange, l.RoutingKey
		m, _ = o.rewrite(&l, "", now)
	}
	p, err := broker.ParseStored(m.Properties)
	if err != nil {
		return d, true, err
	}
	delete(p.Headers, ReplayHeader) // there is no run
	d = Draft{Exchange: string(m.Exchange), RoutingKey: string(m.RoutingKey), Body: m.Body}
	d.Properties, err = json.MarshalIndent(propertyMapOf(&p), "", "  ")
	return d, true, err
}

// Resend publishes d and takes the message seq out of q, as one (broker: Publisher.Move),
// which is as safe as the store makes it once a Commit that follows has called back. The message stays as it is if skipped says why, or for
// an error: about the draft, the rights of p, or publishers that have to wait.
func Resend(b *broker.Broker, p *broker.Publisher, q *broker.Queue, seq queue.Seq, d *Draft) (skipped SkipReason, err error) {
	m, err := d.publication()
	if err != nil {
		return "", err
	}
	if reason, _ := b.Gate(); reason != "" {
		return "", fmt.Errorf("%w: %s", ErrBlocked, reason)
	}
	x, ok := q.Look(seq, 0)
	if !ok {
		return SkippedGone, nil
	}
	outcome, err := p.Move(q.Ref(&x), m, false)
	return skipReasons[outcome], err
}

func (d *Draft) publication() (*broker.Publication, error) {
	var properties propertyMap
	decoder := json.NewDecoder(bytes.NewReader(d.Properties))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&properties); err != nil {
		return nil, fmt.Errorf("%w: its properties cannot be read: %w", ErrDraft, err)
	}
	p, err := properties.properties()
	if err != nil {
		return nil, fmt.Errorf("%w: its properties cannot be read: %w", ErrDraft, err)
	}
	if len(d.Exchange) > 255 || len(d.RoutingKey) > 255 {
		return nil, fmt.Errorf("%w: exchange and routing key have at most 255 bytes", ErrDraft)
	}
	return &broker.Publication{Exchange: []byte(d.Exchange), RoutingKey: []byte(d.RoutingKey), Properties: p.Append(nil), Body: d.Body}, nil
}
