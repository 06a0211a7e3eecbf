package management

import (
	"math"
	"slices"

	"curfew/broker/management/rest"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/operate"
	"curfew/broker/queue"
)

// fetch has the parameters of a get.
type fetch struct {
	count    int
	noAck    bool
	after    broker.Settlement // of what was not acked when it was taken
	encoding string
	truncate int // <0: whole
}

// ackModes has how each mode settles the messages.
var ackModes = map[string]fetch{
	"ack_requeue_true":     {after: broker.PutBack},
	"reject_requeue_true":  {after: broker.PutBack},
	"ack_requeue_false":    {noAck: true},
	"reject_requeue_false": {after: broker.Reject},
}

// getMessages takes messages from the queue, and puts them back or not, as the mode says.
func getMessages(r *request) error {
	f, err := r.Fields("ackmode", "count", "encoding")
	if err != nil {
		return err
	}
	want, err := readFetch(f)
	if err != nil {
		return err
	}
	list := []object{}
	err = r.Operations.Get(r.Context(), r.Actor, operate.GetRequest{
		Queue: r.QueueNamed(), Count: want.count, NoAck: want.noAck, After: want.after, Memory: r.Account,
	}, func(d *broker.Delivery) {
		m := rest.Message{
			Exchange: string(d.Message.Exchange), RoutingKey: string(d.Message.RoutingKey), Redelivered: d.Redelivered,
			Properties: d.Message.Properties, Body: d.Message.Body, Bytes: len(d.Message.Body),
		}
		if want.truncate >= 0 {
			m.Body = m.Body[:min(want.truncate, m.Bytes)]
		}
		o := m.Object(want.encoding)
		o["message_count"] = d.Ready
		list = append(list, o)
	})
	if err != nil {
		return prefixed(err)
	}
	return r.Answer(list)
}

// prefixed keeps the code's name before the text, as RabbitMQ does here.
func prefixed(err error) error {
	if e, ok := err.(*amqp.Exception); ok && e.Code == amqp.NotFound {
		return rest.NewProblem(404, "not_found", e.Text)
	}
	return err
}

func readFetch(f rest.Fields) (fetch, error) {
	mode, err := f.Text("ackmode", "")
	if err != nil {
		return fetch{}, err
	}
	want, ok := ackModes[mode]
	if !ok {
		return fetch{}, rest.Bad("Unsupported ackmode. Please use ack_requeue_true, reject_requeue_true, ack_requeue_false or reject_requeue_false.")
	}
	if want.encoding, err = readEncoding(f); err != nil {
		return fetch{}, err
	}
	count, err := f.Integer("count", 0)
	if err != nil {
		return fetch{}, err
	}
	truncate, err := f.Integer("truncate", -1)
	want.count, want.truncate = int(count), int(truncate)
	if count < 0 { // all messages, as in RabbitMQ
		want.count = math.MaxInt
	}
	return want, err
}

func readEncoding(f rest.Fields) (string, error) {
	e, err := f.Text("encoding", "auto")
	if err == nil && e != "auto" && e != "base64" {
		err = rest.Bad("Unsupported encoding. Please use auto or base64.")
	}
	return e, err
}

// The defaults of a peek or a search.
const (
	peekCount = 10
	peekBytes = 4096
)

// peek shows messages and changes nothing.
func peek(r *request) error {
	f, err := r.Fields()
	if err != nil {
		return err
	}
	want, encoding, err := readPeek(f)
	if err != nil {
		return err
	}
	want.Queue, want.Memory = r.QueueNamed(), r.Account
	found, err := r.Operations.Peek(r.Context(), r.Actor, want)
	if err != nil {
		return err
	}
	list := []object{}
	for i := range found {
		list = append(list, peekObject(r, &found[i], encoding))
	}
	return r.Answer(list)
}

func readPeek(f rest.Fields) (p operate.PeekRequest, encoding string, err error) {
	if encoding, err = readEncoding(f); err != nil {
		return p, "", err
	}
	from, _ := f.Text("from", "head")
	state, _ := f.Text("state", "")
	states := map[string]queue.State{"": 0, "ready": queue.Ready, "unacked": queue.Unacked, "waiting": queue.Waiting}
	if !slices.Contains([]string{"head", "tail"}, from) {
		return p, "", rest.Bad("Unsupported from. Please use head or tail.")
	}
	if _, ok := states[state]; !ok {
		return p, "", rest.Bad("Unsupported state. Please use ready, unacked or waiting.")
	}
	p = operate.PeekRequest{FromTail: from == "tail", State: states[state]}
	for _, n := range []struct {
		key    string
		to     *int
		absent int64
	}{{"offset", &p.Offset, 0}, {"count", &p.Count, peekCount}, {"truncate", &p.BodyBytes, peekBytes}} {
		v, err := f.Integer(n.key, n.absent)
		if err != nil {
			return p, "", err
		}
		*n.to = int(v)
	}
	return p, encoding, nil
}

// peekObject returns a message in the form of a get, with its state.
func peekObject(r *request, m *operate.Message, encoding string) object {
	shown := rest.Message{
		Exchange: string(m.Message.Exchange), RoutingKey: string(m.Message.RoutingKey), Redelivered: m.Redelivered,
		Properties: m.Message.Properties, Body: m.Message.Body, Bytes: m.BodyBytes,
	}
	o := shown.Object(encoding)
	o["seq"], o["position"], o["state"] = uint64(m.Seq), m.Position, m.State.String()
	o["persistent"], o["expired"], o["deadline"] = m.Persistent, m.Expired, nil
	if m.Deadline != 0 {
		o["deadline"] = m.DeadlineMillis
	}
	if m.WaitsUntil != 0 {
		o["waits_until"] = r.api.b.UnixMillis(m.WaitsUntil)
	}
	return o
}
