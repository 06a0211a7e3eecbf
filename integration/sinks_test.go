package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/monitor/audit"
)

// most notifications of one sink for a storm of a minute: it begins, grows tenfold a few times, is over.
const notificationsAllowed = 12

// sinks takes what every kind of HTTP sink is sent.
type sinks struct {
	url string

	mu   sync.Mutex
	sent map[string]int // requests by path
}

func startSinks(t testing.TB) *sinks {
	s := &sinks{sent: make(map[string]int)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// settings turn every sink on, for the misses: what else there is to tell of a storm depends on how fast the machine is.
func (s *sinks) settings(t testing.TB) []string {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	check(t, os.WriteFile(rules, []byte("rules: [{name: others, events: [at_risk, deadline_fired_late], to: []}]"), 0o600))
	return []string{
		"ALERT_RULES=" + rules,
		"ALERT_WEBHOOK_URL=" + s.url + "/webhook", "ALERT_SLACK_URL=" + s.url + "/slack", "ALERT_CLOUDEVENTS_URL=" + s.url + "/cloudevents",
		"ALERT_PAGERDUTY_ROUTING_KEY=key", "ALERT_PAGERDUTY_URL=" + s.url + "/pagerduty", "ALERT_ALERTMANAGER_URL=" + s.url + "/alertmanager",
		"ALERT_AMQP=json", "ALERT_GROUP_WAIT=1s", "ALERT_GROUP_INTERVAL=10s",
	}
}

func (s *sinks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, err := io.Copy(io.Discard, r.Body)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent[r.URL.Path]++
	}
	w.WriteHeader(http.StatusAccepted)
}

// judge holds the sinks to a few notifications each, and the last event of the exchange, that it is over, to the whole count.
// Alertmanager wants its alerts sent again and again, and is not counted.
func (s *sinks) judge(t testing.TB, events <-chan amqp091.Delivery) {
	t.Helper()
	var event struct {
		Status string
		Count  int
	}
	for told := 1; event.Status != "resolved"; told++ {
		select {
		case d := <-events:
			check(t, json.Unmarshal(d.Body, &event))
		case <-time.After(clientLimit):
			t.Fatal("the end of the storm was not told")
		}
		if told > notificationsAllowed {
			t.Fatalf("the exchange was given more than %d events", notificationsAllowed)
		}
	}
	if event.Count != millionCount {
		t.Errorf("in the end %d misses were told, not %d", event.Count, millionCount)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("requests by sink: %v", s.sent)
	for _, path := range []string{"/webhook", "/slack", "/cloudevents", "/pagerduty", "/alertmanager/api/v2/alerts"} {
		if n := s.sent[path]; n == 0 || n > notificationsAllowed && path != "/alertmanager/api/v2/alerts" {
			t.Errorf("%s was sent %d notifications", path, n)
		}
	}
}

// auditedIn counts the expiries that the audit of a data folder has, those that it knows it lost included.
func auditedIn(t testing.TB, dir string) (n int) {
	t.Helper()
	lost := 0
	for r, err := range audit.Search(t.Context(), filepath.Join(dir, "audit"), audit.Query{}) {
		check(t, err)
		if r.Lost > 0 {
			lost += int(r.Lost)
		} else {
			n++
		}
	}
	if lost > 0 {
		t.Logf("the audit lost %d", lost)
	}
	return n + lost
}
