package demo

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/client"
)

// TestInUse: other queues and other machines speak against filling it.
func TestInUse(t *testing.T) {
	queues := `[{"name": "demo.orders"}, {"name": "curfew.undeliverable"}]`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(queues)) }))
	defer s.Close()
	f := &Filler{Client: client.New(func() (client.Endpoint, error) { return client.Endpoint{URL: s.URL}, nil }), At: client.Endpoint{URL: s.URL}}
	why := func() string {
		text, err := f.InUse(context.Background())
		require.NoError(t, err)
		return text
	}
	assert.Empty(t, why())
	f.At.URL = "https://curfew.example.org"
	assert.Equal(t, "it is on another machine", why())
	queues = `[{"name": "orders"}]`
	assert.Contains(t, why(), `such as "orders"`)
}
