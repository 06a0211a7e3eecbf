package incident

import (
	"context"
	"curfew/broker/deadline"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a webhook's other end without a network, so that time can be virtual.
type receiver struct {
	mu      sync.Mutex
	posts   []message
	tries   int
	answers []answer // of the next tries; then 200
	block   chan struct{}
}

type answer struct {
	code   int
	header http.Header
	err    error
}

func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	block := r.block
	r.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries++
	a := answer{code: http.StatusOK}
	if len(r.answers) > 0 {
		a, r.answers = r.answers[0], r.answers[1:]
	}
	if a.err != nil {
		return nil, a.err
	}
	if a.code/100 == 2 {
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			return nil, err
		}
		r.posts = append(r.posts, m)
	}
	return &http.Response{StatusCode: a.code, Header: a.header, Body: http.NoBody, Request: req}, nil
}

// got are the posts so far.
func (r *receiver) got() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.posts
}

func (r *receiver) tried() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tries
}

// answer has the next tries answered so.
func (r *receiver) answer(a ...answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = append(r.answers, a...)
}

// pass lets time pass in the bubble of a test, and what is due at its end happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

type setup struct {
	*Incidents
	mu       *sync.Mutex
	now      *State // guarded by mu
	receiver *receiver
	log      *observer.ObservedLogs
	registry *prometheus.Registry
}

// run starts alerts in the bubble of the test. change may be nil.
func run(t *testing.T, change func(*Options)) setup {
	t.Helper()
	s := prepare(t, change)
	s.start(t)
	return s
}

// settingsFile writes an alerts.yaml that says text, and where the dashboard is.
func settingsFile(t *testing.T, text string) string {
	t.Helper()
	return writeFile(t, text+"\nexternalURL: http://curfew.example\n")
}

func writeFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "alerts.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// prepare makes what run starts.
func prepare(t *testing.T, change func(*Options)) setup {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	s := setup{receiver: &receiver{}, log: logs, registry: prometheus.NewRegistry(), mu: new(sync.Mutex), now: new(State)}
	o := Options{
		File: settingsFile(t, ""), URLs: []string{"webhook+http://hooks.example/secret"}, Instance: "here",
		Log: zap.New(core), Registerer: s.registry, Look: s.look,
	}
	if change != nil {
		change(&o)
	}
	var err error
	s.Incidents, err = New(o)
	require.NoError(t, err)
	if len(s.delivery.outboxes) > 0 {
		if hook, ok := s.delivery.outboxes[0].sink.(*webhook); ok {
			hook.client.Transport = s.receiver
		}
	}
	return s
}

func (s setup) start(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

func (s setup) metric(t *testing.T, name, result string) (sum float64) {
	t.Helper()
	families, err := s.registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := make(map[string]string)
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if f.GetName() == name && labels["sink"] == "webhook" && labels["result"] == result {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// look is the state that the test has set.
func (s setup) look(to *State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tallies, starved, sinks, err := to.Tallies, to.Starved, to.Sinks, to.FileError
	*to = *s.now
	to.Tallies, to.Starved, to.Sinks, to.FileError = tallies, max(starved, s.now.Starved), sinks, err
}

// set changes the state.
func (s setup) set(change func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.now)
}

// degraded says why Redis is away; "" that it is not.
func (s setup) degraded(why string) { s.set(func(now *State) { now.Schedule = why }) }

// wrong has the summaries of the incidents.
func (s setup) wrong() (list []string) {
	for _, i := range s.List() {
		list = append(list, i.Summary)
	}
	return list
}

// told has what the webhook was sent: status, alertname and queue.
func (s setup) told() (list []string) {
	for _, p := range s.receiver.got() {
		list = append(list, strings.TrimSpace(p.Status+" "+p.CommonLabels["alertname"]+" "+p.CommonLabels["queue"]))
	}
	return list
}

func missed(queue string, n int64) Event {
	return Event{
		Kind: Expired, VHost: "/", Queue: queue, Action: "dropped",
		Stats: Stats{Count: n, FirstDeadlineAt: 1_000, WorstMillis: 40},
	}
}

// List has the incidents that are not over.
func (a *Incidents) List() []Incident { return a.View().Open }

// count is how many there are.
func (t *tallies) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}

// judge is what Run does once a second.
func (a *Incidents) judge() {
	a.looking.Lock()
	defer a.looking.Unlock()
	a.judgeLocked(time.Now())
}

// atRisk is the forecast of a queue in which n messages will expire, since nobody consumes.
func atRisk(q QueueName, n int) deadline.Forecast {
	return deadline.Forecast{VHost: q.VHost, Queue: q.Name, Ready: n, Deadlines: n, AtRisk: n, NearlyDue: true}
}

// stuckAt is the same, since its consumer takes nothing.
func stuckAt(q QueueName, n int) deadline.Forecast {
	f := atRisk(q, n)
	f.Consumers, f.Stuck = 1, true
	return f
}
