package manage

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/server/internal/convert"
)

// ContainerID is the broker's name in AMQP 1.0.
const ContainerID = "curfew"

// manager carries out one request to /management, as RabbitMQ 4 does: the same paths, bodies, status
// codes and texts.
type manager struct {
	*Declarer
	*convert.Request
	path []string // as it was sent: with its escapes
}

// refusal is a status code and a text of an answer.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// Manage answers a request to /management. Its error is that the user may not do it: as in RabbitMQ, it ends the session.
func Manage(user *Declarer, message []byte) ([]byte, error) {
	r, err := convert.ParseRequest(message)
	if err != nil {
		return nil, amqp.NewException(amqp.PreconditionFailed, 0, 0, "the request is malformed: %s", err)
	}
	path, query, _ := strings.Cut(r.Path, "?")
	m := &manager{user, r, strings.Split(path, "/")[1:]}
	status, body, err := m.route(query)
	if err == nil {
		return r.Answer(status, body), nil
	}
	if e, is := errors.AsType[*refusal](err); is {
		return r.Answer(e.status, e.text), nil
	}
	e, is := errors.AsType[*amqp.Exception](err)
	if !is || e.Code == amqp.AccessRefused {
		return nil, err
	}
	return r.Answer(m.statusOf(e), convert.Text(e)), nil
}

func (m *manager) statusOf(e *amqp.Exception) int {
	switch text := convert.Text(e); {
	case strings.HasPrefix(text, "cannot declare queue"): // a limit is reached
		return 403
	case m.Method == http.MethodPut && e.Code == amqp.PreconditionFailed && !strings.HasPrefix(text, "unknown exchange type"):
		return 409
	}
	return 400
}

func (m *manager) route(query string) (status int, body any, err error) {
	var kind string
	if len(m.path) > 0 {
		kind = m.path[0]
	}
	switch m.Method + " " + kind + " " + strconv.Itoa(len(m.path)) {
	case "GET queues 2":
		return m.getQueue()
	case "PUT queues 2":
		return m.putQueue()
	case "DELETE queues 2":
		return m.deleteQueue()
	case "DELETE queues 3":
		if m.path[2] == "messages" {
			return m.purge()
		}
	case "PUT exchanges 2":
		return m.putExchange()
	case "DELETE exchanges 2":
		return m.deleteExchange()
	case "POST bindings 1":
		return m.bind()
	case "DELETE bindings 2":
		return m.unbind()
	case "GET bindings 1":
		return m.bindings(query)
	}
	return 0, nil, refuse(404, "%s %s is not an operation of /management", m.Method, m.Path)
}

// name is the second part of the path.
func (m *manager) name() (string, error) {
	name, err := url.PathUnescape(m.path[1])
	if err != nil {
		return "", refuse(400, "bad path '%s'", m.Path)
	}
	return name, nil
}

// newName is name for what must not be reserved or have ends of lines in it.
func (m *manager) newName(kind string) (string, error) {
	name, err := m.name()
	switch {
	case err != nil:
		return "", err
	case name == "" && kind == "exchange":
		return "", errDefault
	case name == "":
		return "", refuse(400, "declare queue with empty name not allowed")
	case strings.HasPrefix(name, "amq."):
		return "", refuse(403, "%s '%s' in vhost '%s' starts with reserved prefix 'amq.'", kind, name, m.VHost.Name())
	}
	return name, checkLineEnds(name)
}

var errDefault = refuse(403, "operation not permitted on the default exchange")

func checkLineEnds(name string) error {
	if strings.ContainsAny(name, "\r\n") {
		return refuse(400, "Bad name '%s': line feed and carriage return characters not allowed", name)
	}
	return nil
}

// read reads the entries of the body into the variables that have their names.
func (m *manager) read(what string, into map[string]any) error {
	body, ok := m.Body.(amqp10.Map)
	if !ok {
		return refuse(400, "the body is not a map")
	}
	for _, e := range body {
		key, _ := e.Key.(string)
		ok := false
		switch to := into[key].(type) {
		case *bool:
			*to, ok = e.Value.(bool)
		case *string:
			*to, ok = e.Value.(string)
		case *amqp.Table:
			*to, ok = convert.Table(e.Value)
		}
		if !ok {
			return refuse(400, "bad %s '%v'", what, e.Key)
		}
	}
	return nil
}

func (m *manager) getQueue() (int, any, error) {
	name, err := m.name()
	if err == nil {
		err = m.Rights.CheckQueue(name)
	}
	if err != nil {
		return 0, nil, err
	}
	q, err := m.VHost.Queues.Get(name)
	if err != nil {
		return 0, nil, refuse(404, "queue '%s' in vhost '%s' not found", name, m.VHost.Name())
	}
	return 200, describe(q), nil
}

func describe(q *broker.Queue) amqp10.Map {
	ready, _, consumers := q.Messages.Counts()
	d := q.Declared()
	return amqp10.Map{
		{Key: "leader", Value: ContainerID}, {Key: "replicas", Value: amqp10.Array{ContainerID}},
		{Key: messageCount, Value: uint64(ready)}, {Key: "consumer_count", Value: uint32(consumers)},
		{Key: "name", Value: q.Name}, {Key: "vhost", Value: q.VHost().Name()},
		{Key: "durable", Value: d.Durable}, {Key: "auto_delete", Value: d.AutoDelete}, {Key: "exclusive", Value: d.Exclusive},
		{Key: "type", Value: q.Arguments.Type.String()}, {Key: "arguments", Value: convert.Value(d.Args)},
	}
}

func (m *manager) putQueue() (status int, body any, err error) {
	d := amqp.QueueDeclare{Durable: true}
	err = m.read("queue property", map[string]any{
		"durable": &d.Durable, "exclusive": &d.Exclusive, "auto_delete": &d.AutoDelete, "arguments": &d.Arguments,
	})
	if err == nil {
		d.Queue, err = m.newName("queue")
	}
	if err != nil {
		return 0, nil, err
	}
	if _, err := m.VHost.Queues.Get(d.Queue); err != nil {
		status = 201
	} else {
		status = 200
	}
	var name string
	if _, _, err = m.Execute(&d, &name); err != nil {
		return 0, nil, err
	}
	q, err := m.VHost.Queues.Get(name)
	if err != nil { // it was deleted in the meantime
		return 0, nil, err
	}
	return status, describe(q), nil
}

func (m *manager) deleteQueue() (int, any, error) {
	name, err := m.name()
	if err == nil {
		err = checkLineEnds(name)
	}
	if err != nil {
		return 0, nil, err
	}
	n, err := m.Rights.DeleteQueue(m.VHost, m.Owner, m.VHost.Queues.NameOf(name), broker.QueueDeletion{})
	return 200, amqp10.Map{{Key: messageCount, Value: uint64(n)}}, err
}

func (m *manager) purge() (int, any, error) {
	name, err := m.name()
	if err != nil {
		return 0, nil, err
	}
	q, err := m.QueueToRead(name, "")
	if err != nil {
		return 0, nil, err
	}
	return 200, amqp10.Map{{Key: messageCount, Value: uint64(q.Messages.Purge())}}, nil
}

// messageCount is the key of a number of messages in an answer.
const messageCount = "message_count"

func (m *manager) putExchange() (int, any, error) {
	d := amqp.ExchangeDeclare{Type: "direct", Durable: true}
	err := m.read("exchange property", map[string]any{
		"type": &d.Type, "durable": &d.Durable, "auto_delete": &d.AutoDelete, "internal": &d.Internal, "arguments": &d.Arguments,
	})
	if err != nil {
		return 0, nil, err
	}
	if d.Exchange, err = m.name(); err != nil {
		return 0, nil, err
	}
	if m.VHost.Exchanges.Check(d.Exchange) != nil || d.Exchange == "" {
		if _, err := m.newName("exchange"); err != nil {
			return 0, nil, err
		}
	}
	_, _, err = m.Execute(&d, nil)
	return 204, nil, err
}

func (m *manager) deleteExchange() (int, any, error) {
	name, err := m.newName("exchange")
	if err == nil {
		err = m.Rights.DeleteExchange(m.VHost, name, false)
	}
	return 204, nil, err
}

func (m *manager) bind() (int, any, error) {
	var queue, exchange string
	var b broker.Binding
	err := m.read("binding field", map[string]any{
		"source": &b.Source, "destination_queue": &queue, "destination_exchange": &exchange, "binding_key": &b.RoutingKey, "arguments": &b.Args,
	})
	b.Destination, b.ToExchange = queue, queue == ""
	if b.ToExchange {
		b.Destination = exchange
	}
	if err == nil {
		err = checkEnds(&b)
	}
	if err == nil {
		err = m.Rights.Bind(m.VHost, m.Owner, b)
	}
	return 204, nil, err
}

func checkEnds(b *broker.Binding) error {
	if b.Source == "" || b.Destination == "" {
		return errDefault
	}
	return checkLineEnds(b.Source + b.Destination)
}

// bindingPath is what names a binding in a path.
var bindingPath = regexp.MustCompile(`^src=([^;]+);dst([eq])=([^;]+);key=([^;]*);args=([0-9A-Za-z_-]*)$`)

func (m *manager) unbind() (int, any, error) {
	parts := bindingPath.FindStringSubmatch(m.path[1])
	if parts == nil {
		return 0, nil, refuse(400, "bad binding path segment '%s'", m.path[1])
	}
	for i := range parts {
		var err error
		if parts[i], err = url.PathUnescape(parts[i]); err != nil {
			return 0, nil, refuse(400, "bad binding path segment '%s'", m.path[1])
		}
	}
	b := broker.Binding{Source: parts[1], ToExchange: parts[2] == "e", Destination: parts[3], RoutingKey: parts[4]}
	err := checkEnds(&b)
	b.Args = amqp.Table{"": parts[5]} // of no binding, unless one is found: it is checked all the same whether the user may unbind
	for _, each := range m.between(&b) {
		if hashOf(each.Args) == parts[5] {
			b = each
		}
	}
	if err == nil {
		err = m.Rights.Unbind(m.VHost, m.Owner, b)
	}
	return 204, nil, err
}

// between are the bindings with the ends and the key of b.
func (m *manager) between(b *broker.Binding) []broker.Binding {
	return slices.DeleteFunc(m.VHost.BindingsBetween(*b), func(x broker.Binding) bool { return x.RoutingKey != b.RoutingKey })
}

// hashOf tells arguments apart; it is empty if there are none.
func hashOf(args amqp.Table) string {
	if len(args) == 0 {
		return ""
	}
	sum := sha256.Sum256(amqp10.Append(nil, convert.Value(args)))
	return base64.RawURLEncoding.EncodeToString(sum[:4])
}

func (m *manager) bindings(query string) (int, any, error) {
	values, err := url.ParseQuery(query)
	b := broker.Binding{Source: values.Get("src"), Destination: values.Get("dstq"), RoutingKey: values.Get("key")}
	if b.ToExchange = values.Has("dste"); b.ToExchange {
		b.Destination = values.Get("dste")
	}
	if err != nil || !values.Has("src") || !values.Has("key") || !values.Has("dstq") && !b.ToExchange {
		return 0, nil, refuse(400, "missing 'src', 'key', and 'dste' or 'dstq' in query: %s", query)
	}
	check, to, char := m.Rights.CheckQueue, "destination_queue", "q"
	if b.ToExchange {
		check, to, char = m.Rights.CheckExchange, "destination_exchange", "e"
	}
	if err = checkEnds(&b); err == nil {
		err = check(b.Destination)
	}
	if err == nil {
		err = m.Rights.CheckExchange(b.Source)
	}
	list := amqp10.List{}
	for _, each := range m.between(&b) {
		list = append(list, amqp10.Map{
			{Key: "source", Value: b.Source}, {Key: to, Value: b.Destination}, {Key: "binding_key", Value: b.RoutingKey},
			{Key: "arguments", Value: convert.Value(each.Args)},
			{Key: "location", Value: fmt.Sprintf("/bindings/src=%s;dst%s=%s;key=%s;args=%s",
				escape(b.Source), char, escape(b.Destination), escape(b.RoutingKey), hashOf(each.Args))},
		})
	}
	return 200, list, err
}

// escape escapes all but letters, digits and -._~, which RabbitMQ's clients expect.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
