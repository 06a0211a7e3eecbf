package commands

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"curfew/cmd/internal/cli"
)

// TestScript: every queue of the script has what it needs, and nothing else is in the file.
func TestScript(t *testing.T) {
	var s script
	require.NoError(t, yaml.Unmarshal(scriptText, &s))
	require.Len(t, s.Policies, 2)
	require.Len(t, s.Queues, 8)
	for _, q := range s.Queues {
		require.NotEmpty(t, q.Shows, q.Name)
		require.Contains(t, []string{"", "ack", "hold", "reject", "requeue"}, q.Consume.Take)
		if q.Consume.Take != "" {
			require.Positive(t, q.Consume.Prefetch, q.Name)
		}
		if q.First > 0 {
			require.Contains(t, string(q.message(7).Body), " 7", q.Name)
		}
	}
	orders := s.Queues[2]
	require.Equal(t, []time.Duration{2 * time.Second, 5 * time.Minute}, orders.TTL)
	require.Equal(t, "2000", orders.message(0).Expiration)
	require.Equal(t, "dead-letters", orders.Arguments["x-dead-letter-routing-key"])
	require.Equal(t, "dead-letters", s.Queues[4].Arguments["x-dead-letter-routing-key"], "merged")
}

// TestOthersAreLeftAlone: a virtual host demo that somebody else has made is neither filled nor deleted.
func TestOthersAreLeftAlone(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		_, _ = w.Write([]byte(`{"name": "demo", "description": "the demo of the sales team"}`))
	}))
	defer s.Close()
	f := &Filler{Client: &cli.Client{At: func() (cli.Endpoint, error) { return cli.Endpoint{URL: s.URL}, nil }}, At: cli.Endpoint{URL: s.URL}, AMQP: "amqp://127.0.0.1:1"}
	require.ErrorIs(t, f.Fill(t.Context()), ErrNotOurs)
	_, err := f.Clean(t.Context())
	require.ErrorIs(t, err, ErrNotOurs)
	assert.Equal(t, []string{"GET /api/vhosts/demo", "GET /api/vhosts/demo"}, asked)
	assert.False(t, f.Remote())
	f.At.URL = "https://curfew.example.org"
	assert.True(t, f.Remote())
	f.AMQP = "127.0.0.1:25001"
	assert.ErrorContains(t, f.Fill(t.Context()), "--amqp: want an address such as amqp://")
}
