package management

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/policy"
)

// publish publishes one message and answers when it is as durable as a confirm
// says, and whether it was routed.
func (q *request) publish() error {
	vh, err := q.vhost()
	if err != nil {
		return err
	}
	f, err := q.publishFields()
	if err == nil {
		err = f.need("routing_key", "properties", "payload", "payload_encoding")
	}
	if err != nil {
		return err
	}
	m, err := f.publication(q.exchangeName())
	if err != nil {
		return err
	}
	if most := q.api.b.MaxMessageBytes(); len(m.Body) > most {
		return bad(fmt.Sprintf("406 PRECONDITION_FAILED - message size %d is larger than configured max size %d", len(m.Body), most))
	}
	routed, err := q.publishTo(vh, m)
	if err != nil {
		return q.publishError(err)
	}
	return q.answer(object{"routed": routed})
}

// publishWeight: a payload is held as it came, as a part of the object, as text, as octets
// and by the store.
const publishWeight = 5

// mayPublish is asked before the message is read: who may not publish there sends none,
// and while publishers have to wait nobody does.
func (q *request) mayPublish() error {
	vh, err := q.vhost()
	if err != nil {
		return err
	}
	if err := q.rights(vh).Exchange(access.Write, q.exchangeName()); err != nil {
		return q.publishError(err)
	}
	if _, err := vh.Exchange(q.exchangeName()); err != nil {
		return q.publishError(err)
	}
	if most := publishMost(q.api.b.MaxMessageBytes()); q.ContentLength > most {
		return &http.MaxBytesError{Limit: most}
	}
	return q.gate()
}

// publishMost is the longest request with a message of so many octets, in base64.
func publishMost(message int) int64 { return int64(message)/3*4 + maxBody }

// publishError names the exception that a publish would have closed its channel with.
func (q *request) publishError(err error) error {
	if e, ok := errors.AsType[*amqp.Exception](amqp.Answering(err, amqp.BasicPublishID)); ok {
		return bad(fmt.Sprintf("%d %s", e.Code, e.Text))
	}
	return err
}

// gate refuses a publish while publishers have to wait.
func (q *request) gate() error {
	if why, _ := q.api.b.Gate(); why != "" {
		return &problem{http.StatusServiceUnavailable, "service_unavailable", "publishers are blocked: " + why}
	}
	return nil
}

// publishFields is fields for a body that is long for its payload alone: all else has to
// be as short as the body of another request, since it takes much more memory parsed.
func (q *request) publishFields() (fields, error) {
	b, err := q.body()
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return fields{}, nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil || raw == nil {
		return nil, errNotJSON
	}
	f, others := fields{}, 0
	for key, value := range raw {
		if key == "payload" && value[0] == '"' {
			var text string
			err = json.Unmarshal(value, &text)
			f[key] = text
		} else {
			if others += len(key) + len(value); others > maxBody {
				return nil, &http.MaxBytesError{Limit: maxBody}
			}
			f[key], err = policy.ParseJSON(value)
		}
		if err != nil {
			return nil, errNotJSON
		}
	}
	return f, nil
}

// publication reads the message.
func (f fields) publication(exchange string) (*broker.Publication, error) {
	key, err := f.text("routing_key", "")
	if err != nil {
		return nil, err
	}
	properties, err := f.properties()
	if err != nil {
		return nil, err
	}
	body, err := f.payload()
	if err != nil {
		return nil, err
	}
	if len(key) > 255 || len(exchange) > 255 {
		return nil, bad("routing key is longer than 255 octets")
	}
	return &broker.Publication{Exchange: []byte(exchange), RoutingKey: []byte(key), Properties: properties.Append(nil), Body: body}, nil
}

func (f fields) payload() ([]byte, error) {
	text, err := f.text("payload", "")
	if err != nil {
		return nil, err
	}
	switch encoding := f["payload_encoding"]; encoding {
	case "string":
		return []byte(text), nil
	case "base64":
		body, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, bad([]any{"not_base64", text})
		}
		return body, nil
	default:
		return nil, bad([]any{"unsupported_encoding", encoding})
	}
}

// properties reads the message's properties; an empty list is none.
func (f fields) properties() (p amqp.Properties, err error) {
	var given fields
	switch v := f["properties"].(type) {
	case map[string]any:
		given = v
	case []any:
	default:
		return p, bad([]any{"not_table", "properties"})
	}
	if p.Headers, err = given.table("headers"); err != nil {
		return p, err
	}
	for key, to := range map[string]*string{
		"content_type": &p.ContentType, "content_encoding": &p.ContentEncoding, "correlation_id": &p.CorrelationID, "reply_to": &p.ReplyTo,
		"expiration": &p.Expiration, "message_id": &p.MessageID, "type": &p.Type, "user_id": &p.UserID, "app_id": &p.AppID, "cluster_id": &p.ClusterID,
	} {
		if *to, err = given.text(key, ""); err != nil {
			return p, err
		}
		if len(*to) > 255 {
			return p, bad(key + " is longer than 255 octets")
		}
	}
	return p, given.numbers(&p)
}

func (f fields) numbers(p *amqp.Properties) error {
	for _, n := range []struct {
		key  string
		most int64
		set  func(int64)
	}{
		{"delivery_mode", 255, func(v int64) { p.DeliveryMode = uint8(v) }},
		{"priority", 255, func(v int64) { p.Priority = uint8(v) }},
		{"timestamp", 1 << 62, func(v int64) { p.Timestamp = amqp.Timestamp(v) }},
	} {
		v, err := f.integer(n.key, 0)
		if err != nil {
			return err
		}
		if v < 0 || v > n.most {
			return bad([]any{"out_of_range", n.key, v})
		}
		n.set(v)
	}
	return nil
}

// publishTo publishes, and waits until the message is durable. A client that is
// gone does not wait.
func (q *request) publishTo(vh *broker.VHost, m *broker.Publication) (routed bool, err error) {
	if err := q.gate(); err != nil {
		return false, err
	}
	p := vh.NewPublisher(q.user.Name)
	if routed, err = p.Add(m); err != nil {
		return false, err
	}
	if refused := p.Flush(nil); len(refused) > 0 {
		return false, bad("a queue is full and refuses the message")
	}
	durable := make(chan error, 1)
	q.api.b.Commit(func(err error) { durable <- err })
	select {
	case err := <-durable:
		return routed, err
	case <-q.Context().Done():
		return false, q.Context().Err()
	}
}
