package management

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"curfew/broker/amqp"
	"curfew/broker/management/rest"
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
	routed, err := r.Operations.Publish(r.HTTP.Context(), r.Actor, m)
	if err != nil {
		return publishError(err)
	}
	return r.Answer(object{"routed": routed})
}

// mayPublish is called before the message is read, to refuse users who may not publish there,
// and all users while publishers are blocked.
func mayPublish(r *request) error {
	if err := r.Operations.MayPublish(r.HTTP.Context(), r.Actor, r.exchangeNamed()); err != nil {
		return publishError(err)
	}
	most := int64(r.api.b.MaxMessageBytes())/3*4 + rest.MaxBody // the longest message is in base64
	if r.HTTP.ContentLength > most {
		return &http.MaxBytesError{Limit: most}
	}
	r.HTTP.Body = http.MaxBytesReader(r.W, r.HTTP.Body, most) // if its length is not known
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

// publication is the body of a publish, without its properties.
type publication struct {
	RoutingKey string `json:"routing_key"`
	Payload    string `json:"payload"`
}

// readPublication reads the message.
func readPublication(f rest.Fields, to operate.ExchangeName) (*operate.Publication, error) {
	m, err := operate.Read[publication](f)
	if err != nil {
		return nil, err
	}
	p, err := readProperties(f["properties"])
	if err != nil {
		return nil, err
	}
	body, err := messages.BodyOf(m.Payload, f["payload_encoding"])
	return &operate.Publication{Exchange: to, RoutingKey: m.RoutingKey, Properties: p, Body: body}, err
}

// readProperties reads the message's properties; a list is none.
func readProperties(from any) (amqp.Properties, error) {
	given, isTable := from.(map[string]any)
	if _, isList := from.([]any); !isTable && !isList {
		return amqp.Properties{}, rest.Bad([]any{"not_table", "properties"})
	}
	of, err := operate.Read[struct {
		Headers operate.Table `json:"headers"`
	}](given)
	p := amqp.Properties{Headers: of.Headers}
	for _, one := range amqp.NamedProperties {
		if v, is := given[one.Name]; is && err == nil {
			err = operate.ReadInto(one.Name, one.Of(&p), v)
		}
	}
	if err == nil && p.Timestamp > maxTimestamp {
		err = operate.OutOfRange("timestamp", int64(p.Timestamp))
	}
	return p, err
}

// maxTimestamp bounds the property timestamp, Unix seconds.
const maxTimestamp = 1 << 62
