package alert

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// post sends one notification to a server that answers with handle.
func post(t *testing.T, handle http.HandlerFunc) error {
	t.Helper()
	server := httptest.NewServer(handle)
	defer server.Close()
	u, err := url.Parse(server.URL + "/hook?token=secret")
	require.NoError(t, err)
	w := newWebhook(u, Options{})
	defer w.client.CloseIdleConnections()
	return w.send(context.Background(), notification{key: key{kind: DeadlineMissed, vhost: "/", queue: "q\"\n", action: "dropped"}, Tally: Tally{Count: 1}, startsAt: time.Now()})
}

func TestWebhookOverHTTP(t *testing.T) {
	var body []byte
	require.NoError(t, post(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, http.MethodPost, r.Method)
		assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
		assert.Equal(t, "token=secret", r.URL.RawQuery)
		body, _ = io.ReadAll(r.Body)
	}))
	require.Contains(t, string(body), `"version":"4"`)
	require.Contains(t, string(body), `"endsAt":"0001-01-01T00:00:00Z"`)
	require.Contains(t, string(body), `"truncatedAlerts":0`)
	require.Contains(t, string(body), `"queue":"q\"\n"`)
}

func TestWebhookFollowsNoRedirect(t *testing.T) {
	hits := 0
	err := post(t, func(w http.ResponseWriter, r *http.Request) {
		hits++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	require.ErrorContains(t, err, "307")
	require.Equal(t, 1, hits)
}

func TestWebhookReadsALongAnswerInPart(t *testing.T) {
	sent := 0
	require.NoError(t, post(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 10_000 { // 40 MB
			n, err := w.Write(make([]byte, 4096))
			if sent += n; err != nil {
				return
			}
		}
	}))
	require.Less(t, sent, 40_000_000)
}

func TestWebhookDoesNotTellItsURL(t *testing.T) {
	server := httptest.NewServer(nil)
	u, err := url.Parse(server.URL + "/hook?token=secret")
	require.NoError(t, err)
	server.Close()
	err = newWebhook(u, Options{}).send(context.Background(), notification{})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}
