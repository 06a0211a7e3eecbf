package management_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
)

// announce sends a request's head alone and returns what it is answered.
func (x *site) announce(user, path string, length int) reply {
	x.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(x.http.URL, "http://"))
	require.NoError(x.t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Basic %s\r\nContent-Length: %d\r\n\r\n",
		path, base64.StdEncoding.EncodeToString([]byte(user)), length)
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(x.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(x.t, err)
	return reply{t: x.t, status: answer.StatusCode, header: answer.Header, body: string(body)}
}

// TestRefusalsNameTheirObjects, as the records of what is done do.
func TestRefusalsNameTheirObjects(t *testing.T) {
	x := start(t)
	x.user("lost", access.Management)
	for path, want := range map[string]operate.Change{
		"/api/users/app":                            {Operation: "delete_user", Values: map[string]any{"name": "app"}},
		"/api/queues/%2F/a%20b":                     {Operation: "delete_queue", At: operate.QueueName{VHost: "/", Name: "a b"}, Values: map[string]any{}},
		"/api/exchanges/%2F/events":                 {Operation: "delete_exchange", At: operate.QueueName{VHost: "/"}, Values: map[string]any{"exchange": "events"}},
		"/api/connections/username/u-":              {Operation: "close_connections", Values: map[string]any{"of": "u-", "connections": int64(0), "reason": "Closed via management plugin"}},
		"/api/curfew/deadletters/%2F/dlq/filters/f": {Operation: "delete_filter", At: operate.QueueName{VHost: "/", Name: "dlq"}, Values: map[string]any{"filter": "f"}},
	} {
		x.changes = nil
		require.Equal(t, http.StatusUnauthorized, x.askAs("lost", "p", http.MethodDelete, path, nil).status, path)
		x.mu.Lock()
		require.Len(t, x.changes, 1, path)
		got := x.changes[0]
		x.mu.Unlock()
		require.Equal(t, "lost refused", got.By.Name+" "+got.Result, path)
		require.Equal(t, want, operate.Change{Operation: got.Operation, At: got.At, Values: got.Values}, path)
	}
}

// TestNowhere: a user who has no permission anywhere is told so, beside lists that are empty.
func TestNowhere(t *testing.T) {
	x := start(t)
	x.user("lost", access.Management)
	got := x.askAs("lost", "p", http.MethodGet, "/api/queues", nil)
	require.Equal(t, http.StatusOK, got.status)
	require.JSONEq(t, "[]", got.body)
	require.Equal(t, "you have no permission in any virtual host; an administrator gives it with: curfew user permissions set lost '.*' '.*' '.*'", got.header.Get(rest.NoteHeader))
	for _, user := range []string{"u-management", "u-monitoring"} {
		require.Empty(t, x.askAs(user, "p", http.MethodGet, "/api/queues", nil).header.Get(rest.NoteHeader))
	}
}

const publishPath = "/api/exchanges/%2F/amq.direct/publish"

// Whether a message may be published is asked before it is read.
func TestPublishIsRefusedBeforeItIsRead(t *testing.T) {
	var used atomic.Int64
	x := startWith(t, broker.Options{MemoryLimit: 1 << 30, MemoryInUse: used.Load})
	x.user("reader", access.Management)
	require.NoError(t, x.b.Accounts.SetPermission(access.Permission{User: "reader", VHost: "/", Read: ".*"}))
	for _, c := range []struct {
		user, path   string
		length, want int
		text         string
	}{
		{"guest:wrong", publishPath, 1000, 401, "Not_Authorized"},
		{"u-:p", publishPath, 1000, 401, "Not management user"},
		{"reader:p", publishPath, 1000, 400, "403 ACCESS_REFUSED - access to exchange 'amq.direct' in vhost '/' refused for user 'reader'"},
		{"guest:guest", "/api/exchanges/%2F/none/publish", 1000, 400, "404 NOT_FOUND - no exchange 'none' in vhost '/'"},
		{"guest:guest", publishPath, 30 << 20, 413, "payload_too_large"},
		{"guest:guest", "/api/queues/%2F/q/get", 2 << 20, 413, "payload_too_large"},
	} {
		got := x.announce(c.user, c.path, c.length)
		assert.Equal(t, c.want, got.status, got.body)
		assert.Contains(t, got.body, c.text)
	}
	var sent letters
	endless, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.http.URL+publishPath, io.LimitReader(&sent, 256<<20)) // without a length
	require.NoError(t, err)
	endless.SetBasicAuth("guest", "guest")
	if answer, err := http.DefaultClient.Do(endless); err == nil { // an error: it was cut off while it was still writing
		answer.Body.Close()
		assert.Equal(t, 413, answer.StatusCode)
	}
	assert.Less(t, sent.n.Load(), int64(64<<20))
	used.Store(2 << 30)
	require.Eventually(t, func() bool { why, _ := x.b.Alarm.Reason(); return why != "" }, time.Minute, time.Millisecond)
	got := x.announce("guest:guest", publishPath, 1000)
	assert.Equal(t, 503, got.status)
	assert.Contains(t, got.body, "publishers are blocked: low on memory")
	require.Eventually(t, func() bool { return x.b.Clients.Used() == 0 }, time.Minute, time.Millisecond)
}

// letters is a body without an end.
type letters struct{ n atomic.Int64 }

func (l *letters) Read(b []byte) (int, error) {
	l.n.Add(int64(len(b)))
	return copy(b, bytes.Repeat([]byte("x"), len(b))), nil
}

// slow is a body of which nothing comes until it is let go.
type slow struct {
	io.Reader
	begun, go_ chan struct{}
	first      bool
}

func (s *slow) Read(p []byte) (int, error) {
	if !s.first {
		s.first = true
		close(s.begun)
		<-s.go_
	}
	return s.Reader.Read(p)
}

// Bodies that are being read share a bound. A request beyond it is told to come again, and
// somebody else's request is served.
func TestBodiesShareABound(t *testing.T) {
	x := startWith(t, broker.Options{MemoryLimit: 1 << 30, MemoryInUse: func() int64 { return 0 }})
	text, err := json.Marshal(map[string]any{"properties": map[string]any{}, "routing_key": "k", "payload": strings.Repeat("p", 4<<20), "payload_encoding": "string"})
	require.NoError(t, err)
	answers := make(chan int, 10)
	send := func(s *slow) {
		r, _ := http.NewRequest("POST", x.http.URL+publishPath, s)
		r.SetBasicAuth("guest", "guest")
		r.ContentLength = int64(len(text))
		answer, err := http.DefaultClient.Do(r)
		if assert.NoError(t, err) {
			answer.Body.Close()
			answers <- answer.StatusCode
		}
	}
	released := make(chan struct{})
	for range 3 { // 20 MiB each, of 64
		s := &slow{Reader: bytes.NewReader(text), begun: make(chan struct{}), go_: released}
		go send(s)
		<-s.begun
	}
	require.Eventually(t, func() bool { return x.b.Clients.Used() > 60<<20 }, time.Minute, time.Millisecond)
	got := x.announce("guest:guest", publishPath, len(text))
	assert.Equal(t, 503, got.status)
	assert.Equal(t, "1", got.header.Get("Retry-After"))
	assert.Contains(t, got.body, "this one holds most; try again")
	for range 3 {
		assert.Less(t, x.askAs("u-administrator", "p", "PUT", "/api/queues/%2F/mine", map[string]any{}).status, 300)
	}
	close(released)
	for range 3 {
		assert.Equal(t, 200, <-answers)
	}
	require.Eventually(t, func() bool { return x.b.Clients.Used() == 0 }, time.Minute, time.Millisecond)
	x.ask("POST", publishPath, string(text)).is(200, "")
}

// A message is as large as it likes for its payload alone.
func TestPublishTakesLongPayloadsAlone(t *testing.T) {
	x := start(t)
	got := x.ask("POST", publishPath, map[string]any{
		"properties": map[string]any{"headers": map[string]any{"h": strings.Repeat("h", 2<<20)}}, "routing_key": "k", "payload": "", "payload_encoding": "string",
	})
	assert.Equal(t, 413, got.status, got.body)
}

// stuck is a client that does not take what it is sent, after the first piece.
type stuck struct {
	*httptest.ResponseRecorder
	pieces, longest int
	taken           chan struct{} // closed with the first piece
	free            chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	if s.pieces++; s.pieces == 1 {
		close(s.taken)
	}
	s.longest = max(s.longest, len(b))
	<-s.free
	return s.ResponseRecorder.Write(b)
}

// Long lists are written in pieces, and a client that does not take one keeps nobody from
// theirs.
func TestLongListsAreWrittenInPieces(t *testing.T) {
	x := start(t)
	const queues = 300
	vh, _ := x.b.VHost("/")
	for i := range queues {
		_, err := vh.Queues.Declare(nil, fmt.Sprintf("q%03d", i), broker.QueueDeclare{})
		require.NoError(t, err)
	}
	free := make(chan struct{})
	var clients []*stuck
	ended := make(chan struct{})
	for range 6 {
		s := &stuck{ResponseRecorder: httptest.NewRecorder(), taken: make(chan struct{}), free: free}
		clients = append(clients, s)
		r := httptest.NewRequestWithContext(context.Background(), "GET", "/api/queues", nil)
		r.SetBasicAuth("guest", "guest")
		r.RemoteAddr = "127.0.0.1:1"
		go func() {
			defer func() { ended <- struct{}{} }()
			x.api.Handler().ServeHTTP(s, r)
		}()
		<-s.taken
	}
	var names []struct{ Name string }
	require.NoError(t, json.Unmarshal([]byte(x.ask("GET", "/api/queues?sort=name&sort_reverse=true&columns=name", nil).body), &names))
	require.Len(t, names, queues)
	assert.Equal(t, "q299", names[0].Name)
	x.scrape("/metrics")
	x.scrape("/metrics/per-object")
	close(free)
	for range clients {
		<-ended
	}
	for _, s := range clients {
		require.NoError(t, json.Unmarshal(s.Body.Bytes(), &names))
		assert.Len(t, names, queues)
		assert.Greater(t, s.pieces, 10)
		assert.Less(t, s.longest, 64<<10)
	}
}

// An export is written in pieces too, and is what it was.
func TestExportIsWrittenInPieces(t *testing.T) {
	x := start(t)
	vh, _ := x.b.VHost("/")
	for i := range 1000 {
		_, err := vh.Queues.Declare(nil, fmt.Sprintf("q%03d", i), broker.QueueDeclare{Durable: true})
		require.NoError(t, err)
	}
	free := make(chan struct{})
	close(free)
	s := &stuck{ResponseRecorder: httptest.NewRecorder(), taken: make(chan struct{}), free: free}
	r := httptest.NewRequest("GET", "/api/definitions", nil)
	r.SetBasicAuth("guest", "guest")
	r.RemoteAddr = "127.0.0.1:1"
	x.api.Handler().ServeHTTP(s, r)
	assert.Greater(t, s.pieces, 2)
	assert.Less(t, s.longest, 64<<10)
	x.ask("POST", "/api/definitions", s.Body.String()).is(http.StatusNoContent, "")
}

func TestPeekIsBounded(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/api/queues/%2F/q", map[string]any{}).is(http.StatusCreated, "")
	got := x.ask("POST", "/api/queues/%2F/q/peek", map[string]any{"count": 500, "truncate": 1 << 20})
	assert.Equal(t, 400, got.status)
	assert.Contains(t, got.body, "count times truncate is more than 16777216")
	x.ask("POST", "/api/queues/%2F/q/peek", map[string]any{"count": 500, "truncate": 30000}).is(200, "")
}

// TestPackedBodiesArePaidFor, since a short one may unpack to much.
func TestPackedBodiesArePaidFor(t *testing.T) {
	x := startWith(t, broker.Options{MemoryLimit: 1 << 30, MemoryInUse: func() int64 { return 0 }})
	x.ask("PUT", "/api/queues/%2F/dlq", `{}`).is(201, "")
	x.ask("POST", "/api/exchanges/%2F/amq.default/publish", `{"routing_key":"dlq","payload":"packed","payload_encoding":"string","properties":{"content_encoding":"gzip"}}`).is(200, "")
	x.ask("POST", "/api/exchanges/%2F/amq.default/publish", `{"routing_key":"dlq","payload":"plain","payload_encoding":"string","properties":{}}`).is(200, "")
	others := x.b.Clients.Open("others", func(error) { t.Error("nobody has to give way to it") })
	more := x.b.Clients.Open("more", func(error) { t.Error("nobody has to give way to it") })
	require.NoError(t, others.Take(25<<20)) // of 64 MiB
	require.NoError(t, more.Take(25<<20))
	assert.Equal(t, 503, x.ask("GET", dlq+"/messages/1", nil).status)
	x.ask("GET", dlq+"/messages/2", nil).is(200, "")
	others.Close()
	more.Close()
	x.ask("GET", dlq+"/messages/1", nil).is(200, "")
	require.Eventually(t, func() bool { return x.b.Clients.Used() == 0 }, time.Minute, time.Millisecond)
}
