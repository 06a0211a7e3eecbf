package management

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"curfew/broker/management/rest"

	"curfew/broker/amqp"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
	"curfew/broker/policy"
)

// publish publishes one message. It answers when the message is as durable as a confirm
// promises, and reports whether it was routed.
func publish(r *request) error {
	f, err := publishFields(r)
	if err == nil {
		err = f.Need("routing_key", "properties", "payload", "payload_encoding")
	}
	if err != nil {
		return err
	}
	m, err := readPublication(f, r.exchangeNamed())
	if err != nil {
		return err
	}
	routed, err := r.Operations.Publish(r.Context(), r.Actor, m)
	if err != nil {
		return publishError(err)
	}
	return r.Answer(object{"routed": routed})
}

// mayPublish is called before the message is read, to refuse users who may not publish there,
// and all users while publishers are blocked.
func mayPublish(r *request) error {
	if err := r.Operations.MayPublish(r.Context(), r.Actor, r.exchangeNamed()); err != nil {
		return publishError(err)
	}
	most := int64(r.api.b.MaxMessageBytes())/3*4 + rest.MaxBody // the longest message is in base64
	if r.ContentLength > most {
		return &http.MaxBytesError{Limit: most}
	}
	r.Body = http.MaxBytesReader(r.W, r.Body, most) // if its length is not known
	return nil
}

// publishError turns an exception into the answer to a publish.
func publishError(err error) error {
	if e, ok := errors.AsType[*amqp.Exception](amqp.Answering(err, amqp.BasicPublishID)); ok {
		return rest.Bad(fmt.Sprintf("%d %s", e.Code, e.Text))
	}
	return err
}

// publishFields reads the fields of a body that may be long only because of its payload: the
// rest must be as short as the body of any other request, since it takes much more memory once
// it is parsed.
func publishFields(r *request) (rest.Fields, error) {
	b, err := r.ReadBody()
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return rest.Fields{}, nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil || raw == nil {
		return nil, rest.ErrNotJSON
	}
	f, others := rest.Fields{}, 0
	for key, value := range raw {
		if key == "payload" && value[0] == '"' {
			var text string
			err = json.Unmarshal(value, &text)
			f[key] = text
		} else {
			if others += len(key) + len(value); others > rest.MaxBody {
				return nil, &http.MaxBytesError{Limit: rest.MaxBody}
			}
			f[key], err = policy.ParseJSON(value)
		}
		if err != nil {
			return nil, rest.ErrNotJSON
		}
	}
	return f, nil
}

// readPublication reads the message.
func readPublication(f rest.Fields, to operate.ExchangeName) (m *operate.Publication, err error) {
	m = &operate.Publication{Exchange: to}
	if m.RoutingKey, err = f.Text("routing_key", ""); err != nil {
		return nil, err
	}
	if m.Properties, err = readProperties(f); err != nil {
		return nil, err
	}
	m.Body, err = readPayload(f)
	return m, err
}

func readPayload(f rest.Fields) ([]byte, error) {
	text, err := f.Text("payload", "")
	if err != nil {
		return nil, err
	}
	return messages.BodyOf(text, f["payload_encoding"])
}

// readProperties reads the message's properties; an empty list is none.
func readProperties(f rest.Fields) (p amqp.Properties, err error) {
	var given rest.Fields
	switch v := f["properties"].(type) {
	case map[string]any:
		given = v
	case []any:
	default:
		return p, rest.Bad([]any{"not_table", "properties"})
	}
	if p.Headers, err = given.Table("headers"); err != nil {
		return p, err
	}
	for key, to := range map[string]*string{
		"content_type": &p.ContentType, "content_encoding": &p.ContentEncoding, "correlation_id": &p.CorrelationID, "reply_to": &p.ReplyTo,
		"expiration": &p.Expiration, "message_id": &p.MessageID, "type": &p.Type, "user_id": &p.UserID, "app_id": &p.AppID, "cluster_id": &p.ClusterID,
	} {
		if *to, err = given.Text(key, ""); err != nil {
			return p, err
		}
	}
	return p, readNumbers(given, &p)
}

func readNumbers(f rest.Fields, p *amqp.Properties) error {
	for _, n := range []struct {
		key  string
		most int64
		set  func(int64)
	}{
		{"delivery_mode", 255, func(v int64) { p.DeliveryMode = uint8(v) }},
		{"priority", 255, func(v int64) { p.Priority = uint8(v) }},
		{"timestamp", 1 << 62, func(v int64) { p.Timestamp = amqp.Timestamp(v) }},
	} {
		v, err := f.Integer(n.key, 0)
		if err != nil {
			return err
		}
		if v < 0 || v > n.most {
			return rest.Bad([]any{"out_of_range", n.key, v})
		}
		n.set(v)
	}
	return nil
}
