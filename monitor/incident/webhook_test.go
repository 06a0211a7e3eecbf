package incident

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hookAt is a webhook as New makes it.
func hookAt(t *testing.T, address, secret string) *webhook {
	t.Helper()
	file := "sinks:\n  hook:\n    url: webhook+" + address
	if secret != "" {
		file += "\n    secret: " + secret
	}
	a, err := New(Options{File: writeFile(t, file)})
	require.NoError(t, err)
	w := a.delivery.outboxes[0].sink.(*webhook)
	t.Cleanup(w.client.CloseIdleConnections)
	return w
}

// quoted is an alert about a queue with characters that JSON escapes.
func quoted() *notice {
	return &notice{Incident: Incident{Condition: "deadline_missed", Since: time.Now()}, rule: everything, names: map[string]string{"queue": "q\"\n"}, at: time.Now()}
}

// post sends one notification to a server that answers with handle.
func post(t *testing.T, handle http.HandlerFunc) error {
	t.Helper()
	server := httptest.NewServer(handle)
	defer server.Close() // it waits for handle
	return hookAt(t, server.URL+"/hook?token=secret", "").send(t.Context(), quoted())
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
	server.Close()
	err := hookAt(t, server.URL+"/hook?token=secret", "").send(t.Context(), quoted())
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}

// TestWebhookIsSigned: the receiver computes the signature over timestamp and body and
// finds it in the header.
func TestWebhookIsSigned(t *testing.T) {
	var header http.Header
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
	}))
	t.Cleanup(server.Close)
	before := time.Now().Unix()
	require.NoError(t, hookAt(t, server.URL, "shared secret").send(t.Context(), quoted()))
	mac := hmac.New(sha256.New, []byte("shared secret"))
	fmt.Fprintf(mac, "%s.%s", header.Get("X-Curfew-Timestamp"), body)
	require.Equal(t, "sha256="+hex.EncodeToString(mac.Sum(nil)), header.Get("X-Curfew-Signature"))
	at, err := strconv.ParseInt(header.Get("X-Curfew-Timestamp"), 10, 64)
	require.NoError(t, err)
	require.GreaterOrEqual(t, at, before)
	require.LessOrEqual(t, at, time.Now().Unix())
}
