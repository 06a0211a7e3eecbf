package cli

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
)

// serve answers requests with handler and returns a client that calls it as ann.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return (&Client{At: func() (Endpoint, error) { return Endpoint{URL: s.URL, User: "ann", Password: "pw"}, nil }})
}

func TestCall(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		assert.Equal(t, []string{"ann", "pw"}, []string{user, password})
		assert.Equal(t, "/api/queues/%2F/a%20b", r.URL.EscapedPath())
		text := new(bytes.Buffer)
		_, _ = text.ReadFrom(r.Body)
		assert.JSONEq(t, `{"count":3}`, text.String())
		w.Header().Set("Curfew-Note", "nobody is here")
		_, _ = w.Write([]byte(`{"name":"a b"}`))
	})
	var answer struct{ Name string }
	var note string
	c.Note = func(text string) { note = text }
	require.NoError(t, c.Call(t.Context(), http.MethodPost, Path("queues", "/", "a b"), map[string]int{"count": 3}, &answer))
	assert.Equal(t, "a b", answer.Name)
	assert.Equal(t, "nobody is here", note)
	var out strings.Builder
	require.NoError(t, c.Stream(t.Context(), Path("queues", "/", "a b"), map[string]int{"count": 3}, &out))
	assert.JSONEq(t, `{"name":"a b"}`, out.String())
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		status       int
		answer, want string
		matched      int
	}{
		{http.StatusNotFound, `{"error":"Object Not Found","reason":"Not Found"}`, "Not Found (HTTP 404); check the name and --vhost", 0},
		{http.StatusBadRequest, `{"error":"bad_request","reason":"a &lt; b\n"}`, "a < b (HTTP 400)", 0},
		{http.StatusUnauthorized, `{"error":"not_authorized","reason":"Login failed"}`,
			"Login failed (HTTP 401); check --user and --password-file, or CURFEW_USER and CURFEW_PASSWORD, and the user's permissions", 0},
		{http.StatusUnauthorized, `{"error":"not_authorized","reason":"Not monitor user"}`,
			"Not monitor user (HTTP 401); it takes the tag monitoring, which an administrator gives with curfew user tags USER monitoring", 0},
		{http.StatusConflict, `{"error":"unconfirmed","reason":"7 match","matched":7}`, "7 match (HTTP 409)", 7},
		{http.StatusBadGateway, "<html>", "502 Bad Gateway (HTTP 502)", 0},
	} {
		client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.answer))
		})
		err := client.Call(t.Context(), http.MethodGet, "/api/x", nil, nil)
		var answered *Error
		require.ErrorAs(t, err, &answered)
		assert.Equal(t, c.status, answered.Status)
		assert.Equal(t, c.matched, answered.Matched)
		assert.EqualError(t, err, c.want)
	}
	for path, want := range map[string]string{
		Path("queues", "/", "no such", "get"): `"no such" was not found in virtual host "/" (HTTP 404); check the name and --vhost`,
		Path("curfew", "queues", "shop", "a"): `"a" was not found in virtual host "shop" (HTTP 404); check the name and --vhost`,
		Path("curfew", "rabbitmq", "pause"):   "this Curfew runs its own broker, and is beside no RabbitMQ (HTTP 404); name another one with --url",
	} {
		missing := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"error":"Object Not Found","reason":"Not Found"}`))
		})
		assert.EqualError(t, missing.Call(t.Context(), http.MethodGet, path, nil, nil), want)
	}
	html := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
	assert.ErrorContains(t, html.Call(t.Context(), http.MethodGet, "/api/x", nil, &struct{}{}), "GET /api/x: unexpected answer: ")
}

// TestNoAnswer: the error does not repeat a password that is in the URL.
func TestNoAnswer(t *testing.T) {
	addr := testenv.FreeAddr()
	c := (&Client{At: func() (Endpoint, error) { return Endpoint{URL: "http://ann:s3cret@" + addr}, nil }})
	err := c.Copy(t.Context(), 0, http.MethodGet, "/api/x", http.NoBody, new(bytes.Buffer))
	assert.ErrorContains(t, err, "is Curfew running there? If it listens elsewhere, name its address with --url or CURFEW_URL")
	assert.ErrorContains(t, err, addr)
	assert.NotContains(t, err.Error(), "s3cret")

	unset := errors.New("no password")
	c = (&Client{At: func() (Endpoint, error) { return Endpoint{}, unset }})
	assert.ErrorIs(t, c.Copy(t.Context(), 0, http.MethodPost, "/api/x", http.NoBody, new(bytes.Buffer)), unset)
}

// TestAdvice is by the kind of error, and a certificate of one's own can be trusted.
func TestAdvice(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	call := func(flags ...string) error {
		c := &cobra.Command{RunE: func(*cobra.Command, []string) error { return nil }}
		a := WithAPI(c)
		c.SetArgs(flags)
		require.NoError(t, c.Execute())
		return a.Call(t.Context(), http.MethodGet, "/api/x", nil, nil)
	}
	require.ErrorContains(t, call("--url", server.URL), "name the file of the authority that signed its certificate, with --ca-file or CURFEW_CA_FILE")
	require.NoError(t, call("--url", server.URL, "--ca-file", file))
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	require.ErrorContains(t, call("--url", "https://localhost:"+port, "--ca-file", file), "call it by a name that is in its certificate")
	t.Setenv("CURFEW_CA_FILE", file)
	require.NoError(t, call("--url", server.URL))
	require.ErrorContains(t, call("--url", server.URL, "--ca-file", "/nonexistent"), "read the certificate authorities")
	require.ErrorContains(t, call("--url", server.URL, "--ca-file", os.Args[0]), "has no certificate")

	require.Contains(t, advice(&net.DNSError{Err: "no such host", IsNotFound: true}), "check the name of the host")
	require.Contains(t, advice(context.DeadlineExceeded), "firewalls")
	require.Contains(t, advice(syscall.ECONNREFUSED), "is Curfew running there?")
}

// TestEmptyNames: a path without a name would be that of something else, such as of the list of all.
func TestEmptyNames(t *testing.T) {
	c := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it is asked") })
	for _, path := range []string{Path("queues", "/", ""), Path("queues", "", "q"), Path("queues", "/", "") + "?if-empty=true"} {
		require.Equal(t, errEmptyName, c.Call(t.Context(), http.MethodDelete, path, nil, nil), path)
	}
}
