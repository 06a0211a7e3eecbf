package cluster

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// answering is a node's management API that counts requests. It answers with status, and with an empty list if that is 0.
func answering(t *testing.T, status *atomic.Int64) (address string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if n := int(status.Load()); n != 0 {
			w.WriteHeader(n)
			return
		}
		_, _ = w.Write([]byte("[]")) // the client sees an error itself
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), asked
}

// TestAPIFailsOver: the node that answered last is asked; when it no longer answers, or answers with an error, the next one is asked. If one
// node refuses, no other is asked.
func TestAPIFailsOver(t *testing.T) {
	var first, second atomic.Int64
	a, askedA := answering(t, &first)
	b, askedB := answering(t, &second)
	c, err := Open(Options{URL: "amqp://ann:s3cret@h", APIURL: "http://127.0.0.1:1," + a + "," + b})
	require.NoError(t, err)
	ask := func() error {
		var all []any
		return c.api.get(t.Context(), "x", &all)
	}
	require.NoError(t, ask())
	require.NoError(t, ask())
	require.EqualValues(t, 2, askedA.Load())
	require.Zero(t, askedB.Load())

	first.Store(http.StatusServiceUnavailable)
	require.NoError(t, ask())
	require.NoError(t, ask())
	require.EqualValues(t, 3, askedA.Load(), "it is left alone while another one answers")
	require.EqualValues(t, 2, askedB.Load())

	second.Store(http.StatusForbidden)
	require.ErrorContains(t, ask(), "refuses")
	require.EqualValues(t, 3, askedA.Load())

	second.Store(http.StatusInternalServerError)
	err = ask()
	require.ErrorContains(t, err, "503")
	require.ErrorContains(t, err, "500")
	require.NotContains(t, err.Error(), "s3cret")
}

func TestAPINodes(t *testing.T) {
	for text, want := range map[string][]string{
		"http://h:15672":                      {"http://h:15672"},
		"https://u:p@a:1,b:2/x?cacertfile=/f": {"https://a:1", "https://b:2"},
		"http://u:p@a, https://b:2":           {"http://a", "https://b:2"},
	} {
		got, err := APINodes(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "h:15672", "amqp://h", "http://", "http://:1", "http://a,,b", "http://u:s3cret@a b"} {
		_, err := APINodes(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "s3cret")
	}
}
