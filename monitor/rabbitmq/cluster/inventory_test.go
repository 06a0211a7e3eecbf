package cluster

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPolled: a queue was polled if its count has grown since an earlier inventory, not if it is above 0.
func TestPolled(t *testing.T) {
	c := &Cluster{}
	require.False(t, c.polled("q", 7, 0), "that may have been long ago")
	require.False(t, c.polled("q", 7, 0))
	require.False(t, c.polled("other", 0, 0))
	require.True(t, c.polled("q", 8, 0))
	require.True(t, c.polled("q", 8, 0), "for ten minutes")
	require.False(t, c.polled("other", 0, 0), "its statistics have begun again, without a read")
	require.True(t, c.polled("other", 1, 0))
	require.True(t, c.polled("new", 5, 0.2), "at this moment")
	require.True(t, c.polled("new", 5, 0))
}

// TestOperatorPolicies change limits of a queue that has no statistics, and not where its dead letters go.
func TestOperatorPolicies(t *testing.T) {
	operator := `[]`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `[]`
		switch name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/"), "/"); name {
		case "overview":
			answer = `{"rabbitmq_version":"3.13.7"}`
		case "queues":
			if r.URL.Query().Get("disable_stats") != "" {
				answer = `[{"name":"a.wait","type":"quorum","policy":"wait"},{"name":"b","type":"quorum"}]`
			}
		case "operator-policies":
			answer = operator
		case "policies":
			answer = `[{"name":"wait","definition":{"dead-letter-exchange":"","dead-letter-routing-key":"a","message-ttl":60000}}]`
		case "whoami":
			answer = `{"tags":["monitoring"]}`
		}
		_, _ = w.Write([]byte(answer)) // the client sees an error itself
	}))
	defer s.Close()
	c, err := Open(Options{URL: "amqp://guest:guest@h", APIURL: s.URL})
	require.NoError(t, err)
	for text, want := range map[string]Unknown{`[]`: UnknownGets, `[{"name":"limits","definition":{"message-ttl":5}}]`: UnknownGets | UnknownPolicy, `{"error":"none"}`: UnknownGets | UnknownPolicy} {
		operator = text
		i, err := c.Inventory(t.Context(), nil, "")
		require.NoError(t, err)
		q := i.Queue("a.wait")
		require.Equal(t, want, q.Unknown, text)
		exchange, leads := q.DeadLetterExchange()
		key, _ := q.Text("dead-letter-routing-key")
		require.Equal(t, []any{"", true, "a"}, []any{exchange, leads, key}, text)
		_, limited := q.TTLMillis()
		require.Equal(t, want&UnknownPolicy == 0, limited, "the operator's may be lower")
		require.Equal(t, want, i.Queue("b").Unknown)
	}
}

// TestOddQueueInTheStatistics: RabbitMQ writes [] for the statistics of a queue that was published to and never read. What cannot be read of
// one queue is said, and does not hide what is known of the others.
func TestOddQueueInTheStatistics(t *testing.T) {
	answers := map[string]string{
		"/api/overview": `{"product_name":"RabbitMQ","rabbitmq_version":"3.10.8","cluster_name":"rabbit@a"}`,
		"/api/queues/": `[{"name":"retry","type":"quorum","arguments":[]},{"name":"polled","type":"quorum"},{"name":"odd","type":"quorum"},
			{"name":"set","type":"quorum","effective_policy_definition":{"message-ttl":5}},{"name":"new","type":"quorum","effective_policy_definition":{}}]`,
		"?columns=name,effective_policy_definition": `[
			{"name":"retry","effective_policy_definition":{},"messages_ready":3,"message_stats":[]},
			{"name":"set","effective_policy_definition":{"expires":7}},{"name":"new"},
			{"name":"polled","effective_policy_definition":{},"messages_ready":0,"message_stats":{"publish":7,"get":20,"get_details":{"rate":1.5}}},
			{"name":"odd","effective_policy_definition":{},"messages_ready":"many"}]`,
		"/api/whoami":     `{"tags":["monitoring"]}`,
		"/api/consumers/": `[]`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		best := ""
		for part := range answers {
			if strings.Contains(r.URL.String(), part) && (strings.ContainsAny(part, "?=") && !strings.Contains(best, "page") || best == "") {
				best = part
			}
		}
		if best != "" && answers[best] == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if best == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(answers[best])) // the client sees an error itself
	}))
	defer s.Close()
	c, err := Open(Options{URL: "amqp://guest:guest@h", APIURL: s.URL})
	require.NoError(t, err)
	i, err := c.Inventory(t.Context(), nil, "")
	require.NoError(t, err)
	require.Len(t, i.Queues, 5)
	require.Equal(t, map[string]any{"message-ttl": int64(5)}, i.Queue("set").Policy, "statistics are old")
	require.Zero(t, i.Queue("new").Unknown, "although it has no statistics yet")
	require.Zero(t, i.Queue("retry").Unknown)
	require.EqualValues(t, 3, i.Queue("retry").Ready)
	require.Zero(t, i.Queue("polled").Unknown)
	require.EqualValues(t, 20, i.Queue("polled").Gets)
	require.True(t, i.Queue("polled").Polled)
	require.Equal(t, UnknownPolicy|UnknownGets, i.Queue("odd").Unknown)
	require.Len(t, i.Unread, 1)
	require.Contains(t, i.Unread[0], "statistics of queues: the entry of odd cannot be read")
	require.Zero(t, i.Queue("retry").Published)
	require.EqualValues(t, 7, i.Queue("polled").Published)
	all := answers["?columns=name,effective_policy_definition"]
	delete(answers, "?columns=name,effective_policy_definition")
	answers["page=1"] = `{"page_count":1,"items":[{"name":"retry","effective_policy_definition":{},"messages_ready":4},{"name":"odd","messages_ready":"many"}]}`
	i, err = c.Inventory(t.Context(), nil, "^(retry|odd)$")
	require.NoError(t, err)
	require.EqualValues(t, 4, i.Queue("retry").Ready)
	require.Zero(t, i.Queue("retry").Unknown)
	require.Equal(t, UnknownPolicy|UnknownGets, i.Queue("polled").Unknown, "nobody watches it")
	require.Len(t, i.Unread, 1)
	delete(answers, "page=1")
	answers["&page=1"], answers["?columns=name,effective_policy_definition"] = `{"page_count":2,"items":[]}`, all
	i, err = c.Inventory(t.Context(), nil, "^(retry|odd)$")
	require.NoError(t, err)
	require.EqualValues(t, 20, i.Queue("polled").Gets, "there are more than a page of them, and all are listed")
	answers["/api/overview"] = "" // as a proxy that refuses for a moment
	_, err = c.Inventory(t.Context(), nil, "")
	require.ErrorContains(t, err, "the management API refuses", "a list without these queues would let go of them")
}
