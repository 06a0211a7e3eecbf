package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/monitor/audit"
)

// most notifications of one sink for a storm: it begins and is over, and so may what else goes wrong meanwhile.
const notificationsAllowed = 6

// sinks takes what every kind of HTTP sink is sent.
type sinks struct {
	url string

	mu   sync.Mutex
	sent map[string]int    // requests by path
	text map[string]string // what they said
}

func startSinks(t testing.TB) *sinks {
	s := &sinks{sent: make(map[string]int), text: make(map[string]string)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// settings turn every kind of sink on, for the misses: what else a storm causes depends on how fast the machine is.
func (s *sinks) settings(t testing.TB) []string {
	slack := strings.TrimPrefix(s.url, "http://")
	return []string{"ALERTS=" + alertsFile(t, `
sinks:
  hook: {url: "webhook+`+s.url+`/webhook", secret: shared}
  manager: {url: "alertmanager+`+s.url+`/alertmanager"}
  events: {url: "amqp:curfew.events"}
  text: {url: "generic+`+s.url+`/generic?template=json"}
  push: {url: "ntfy://`+slack+`/ntfy?scheme=http"}
  chat: {url: "mattermost://`+slack+`/slack?disabletls=yes"}
rules: [{name: others, events: [deadline_fired_late, processor_starved, queue_locked_long], to: []}]
`)}
}

// alertsFile writes an alerts.yaml.
func alertsFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "alerts.yaml")
	check(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (s *sinks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent[r.URL.Path]++
		s.text[r.URL.Path] += r.Header.Get("Title") + "\n" + string(body) + "\n"
	}
	_, _ = io.WriteString(w, "{}")
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
		t.Errorf("in the end %d misses were reported, not %d", event.Count, millionCount)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("requests by sink: %v", s.sent)
	for _, path := range []string{"/webhook", "/generic", "/ntfy", "/hooks/slack", "/alertmanager/api/v2/alerts"} {
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

// TestServicesAreNotified: the binary posts text to services as shoutrrr has them, when deadlines are missed and when that is over.
func TestServicesAreNotified(t *testing.T) {
	t.Parallel()
	s := startSinks(t)
	settings := s.settings(t)
	c := startCurfew(t, append(settings, "INSTANCE=here")...)
	q := topology{queue: "orders", dlx: "dlx", dlq: "dead"}
	goClient{}.declare(t, c.url, q)
	goClient{}.publish(t, c.url, q.queue, []planned{{id: "x", ttlMillis: 1}})
	for _, title := range []string{"Warning: messages expire unconsumed", "Over: messages expired unconsumed"} {
		for _, path := range []string{"/generic", "/ntfy", "/hooks/slack"} {
			eventually(t, startLimit, title+" at "+path, func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return strings.Contains(s.text[path], title) && strings.Contains(s.text[path], "orders") && strings.Contains(s.text[path], "instance here")
			})
		}
	}
}
