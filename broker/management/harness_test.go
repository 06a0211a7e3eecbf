package management_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/definitions"
	"curfew/broker/management"
	"curfew/broker/operate"
	"curfew/broker/server"
)

// site is a broker with a server and its management API.
type site struct {
	t    *testing.T
	b    *broker.Broker
	api  *management.API
	http *httptest.Server
	amqp string // URL without credentials' end
	now  time.Time

	mu      sync.Mutex
	changes []operate.Change // that were recorded
}

// start runs a site with users of every role, password p each.
func start(t *testing.T) *site {
	t.Helper()
	return startWith(t, broker.Options{})
}

func startWith(t *testing.T, o broker.Options) *site {
	t.Helper()
	b, err := broker.New(o)
	require.NoError(t, err)
	s := server.New(server.Options{Broker: b, Version: "test"})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	x := &site{t: t, b: b, amqp: "amqp://guest:guest@" + l.Addr().String(), now: time.Unix(1_800_000_000, 0)}
	ops := operate.New(operate.Options{
		Broker: b, Server: s, Now: func() time.Time { return x.now },
		Recorder: operate.NewRecorder(operate.RecorderOptions{Changed: func(c operate.Change) { x.mu.Lock(); defer x.mu.Unlock(); x.changes = append(x.changes, c) }}),
		Version:  definitions.Version{RabbitMQ: server.RabbitMQVersion, Product: "Curfew", ProductVersion: "test"},
	})
	x.api = management.New(management.Options{
		Broker: b, Server: s, Operations: ops, Node: "curfew@test", Version: "test", Look: noLook, Now: func() time.Time { return x.now },
		Listeners: []management.Listener{{Protocol: "amqp", Address: "127.0.0.1", Port: 5672}, {Protocol: "http", Address: "127.0.0.1", Port: 15672}},
	})
	x.http = httptest.NewServer(x.api.Handler())
	t.Cleanup(func() {
		x.http.Close()
		ops.Close()
		stop()
		assert.NoError(t, <-ended)
		assert.NoError(t, b.Close())
	})
	for _, tag := range []string{access.Administrator, access.Monitoring, access.Policymaker, access.Management, ""} {
		x.user("u-"+tag, tag)
		require.NoError(t, b.Accounts.SetPermission(access.Permission{User: "u-" + tag, VHost: "/", Configure: ".*", Write: ".*", Read: ".*"}))
	}
	return x
}

func (x *site) user(name, tag string) {
	u := access.User{Name: name}
	if tag != "" {
		u.Tags = []string{tag}
	}
	u.SetPassword("p")
	require.NoError(x.t, x.b.Accounts.PutUser(u))
}

// reply is an answer, read.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

// ask sends a request as guest; body is text, nil, or something to be JSON.
func (x *site) ask(method, path string, body any) reply {
	x.t.Helper()
	return x.askAs("guest", "guest", method, path, body)
}

func (x *site) askAs(user, password, method, path string, body any) reply {
	x.t.Helper()
	var r io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(body)
	default:
		b, err := json.Marshal(body)
		require.NoError(x.t, err)
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, x.http.URL+path, r)
	require.NoError(x.t, err)
	if user != "" {
		req.SetBasicAuth(user, password)
	}
	return x.do(req)
}

func (x *site) do(req *http.Request) reply {
	x.t.Helper()
	res, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(x.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(x.t, err)
	return reply{x.t, res.StatusCode, res.Header, string(b)}
}

// is holds the answer to a status and, unless "", a JSON body.
func (r reply) is(status int, body string) reply {
	r.t.Helper()
	assert.Equal(r.t, status, r.status, r.body)
	if body != "" {
		assert.JSONEq(r.t, body, r.body)
	}
	return r
}

// json is the answer's body.
func (r reply) json() any {
	r.t.Helper()
	var v any
	require.NoError(r.t, json.Unmarshal([]byte(r.body), &v), r.body)
	return v
}

func (r reply) object() map[string]any {
	r.t.Helper()
	o, ok := r.json().(map[string]any)
	require.True(r.t, ok, r.body)
	return o
}

func (r reply) list() []any {
	r.t.Helper()
	l, ok := r.json().([]any)
	require.True(r.t, ok, r.body)
	return l
}

func (x *site) dial() *amqp091.Channel {
	x.t.Helper()
	c, err := amqp091.Dial(x.amqp)
	require.NoError(x.t, err)
	x.t.Cleanup(func() { c.Close() })
	ch, err := c.Channel()
	require.NoError(x.t, err)
	return ch
}

func errorOf(kind, reason string) string {
	b, _ := json.Marshal(map[string]any{"error": kind, "reason": reason})
	return string(b)
}

// noLook found nothing.
func noLook() management.Look {
	return management.Look{Concern: func(_, _ string) (string, int) { return "", 0 }}
}
