package commands

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"curfew/broker/operate"
	"curfew/cmd/internal/node"
	"curfew/cmd/internal/settings"
	"curfew/integration/testenv"
)

// note is a row and a request of the operations of this test.
type note struct {
	Name string `json:"name" need:"value" log:"note" eg:"milk"`
	Text string `json:"text" faint:"empty" doc:"What it says."`
	Many int64  `json:"many" min:"0" max:"9" doc:"How often."`
}

var notes = map[string]note{}

var (
	_ = operate.Group("note", "Notes of a test")
	_ = operate.Define(operate.Op{
		Name: "list_notes", Noun: "note", Title: "List the notes", Rule: operate.Rule{Role: operate.Management, Looks: true},
		Routes: []string{"GET /api/curfew/notes"}, Command: "note list", Page: operate.Page{On: "/notes", Title: "Notes", Tab: "/notes", Empty: "No notes."},
	}, func(context.Context, *operate.Call, struct{}) (list []note, err error) {
		for _, one := range notes {
			list = append(list, one)
		}
		return list, nil
	})
	_ = operate.Define(operate.Op{
		Name: "write_note", Noun: "note", Title: "Write a note", Rule: operate.Rule{Role: operate.Administrator},
		Routes: []string{"PUT /api/curfew/notes/{name}"}, Command: "note write <name>",
		Page: operate.Page{On: "/note/new", Title: "New note", Tab: "/notes", Parent: "/notes", Up: "Notes", Rows: "list_notes", Begin: "New note…", Button: "Write", Done: "Written."},
	}, func(_ context.Context, _ *operate.Call, q note) (operate.None, error) {
		notes[q.Name] = q
		return operate.None{}, nil
	})
)

// serveHere runs a node in this process, which has the operations of this test.
func serveHere(t *testing.T) *running {
	t.Helper()
	web, password := testenv.FreeAddr(), filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("other"), 0o600))
	testenv.Setenv(t, "CURFEW_AMQP_ADDR="+testenv.FreeAddr(), "CURFEW_HTTP_ADDR="+web, "CURFEW_OPS_ADDR="+testenv.FreeAddr(), "CURFEW_DATA_DIR="+t.TempDir(), "CURFEW_PASSWORD=other")
	s, err := settings.Load()
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- node.Serve(ctx, node.Options{Settings: &s, Build: node.Build{Version: "test"}, Metrics: prometheus.NewRegistry(), Log: zap.NewNop()}, io.Discard)
	}()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
	})
	require.Eventually(t, func() bool {
		answer, err := http.Get("http://" + web + "/api/none")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	return &running{t, "", []string{"--url", "http://" + web, "--user", "guest", "--password-file", password}}
}

// TestAnOperationIsOnAllFaces: what is written in one place, here, is served and documented by the API, is a command, and is on the dashboard, with its
// rule, its bounds and its record.
func TestAnOperationIsOnAllFaces(t *testing.T) {
	r := serveHere(t)
	assert.Equal(t, "NAME  TEXT  MANY\n", r.ok("note", "list"))
	r.ok("note", "write", "milk", "--text", "buy it", "--many", "2")
	assert.Equal(t, "NAME  TEXT    MANY\nmilk  buy it  2\n", r.ok("note", "list"))
	assert.Contains(t, r.fails("note", "write", "milk", "--many", "10"), "out_of_range many 10")
	assert.Contains(t, r.ok("note", "write", "--help"), "What it says.")

	status, answer := r.ask(http.MethodGet, "/api/curfew/notes", "", nil)
	assert.Equal(t, http.StatusOK, status)
	assert.JSONEq(t, `[{"name":"milk","text":"buy it","many":2}]`, answer)
	documented := map[string]string{}
	for _, one := range node.APIRoutes() {
		documented[one.Method+" "+one.Path] = one.Doc.ID
	}
	assert.Equal(t, "listNotes", documented["GET /api/curfew/notes"])
	assert.Equal(t, "writeNote", documented["PUT /api/curfew/notes/{name}"])

	_, page := r.visit("/notes", nil)
	assert.Contains(t, page, "buy it")
	assert.Contains(t, page, "New note…")
	_, page = r.visit("/note/new", nil)
	token := fieldsOf(page).Get("token")
	require.NotEmpty(t, token)
	_, page = r.visit("/note/new", url.Values{"token": {token}, "name": {"bread"}, "many": {"x"}})
	assert.Contains(t, page, "not a whole number")
	_, page = r.visit("/note/new", url.Values{"token": {token}, "name": {"bread"}, "text": {"rye"}, "many": {"1"}})
	assert.Contains(t, page, "Written.")
	assert.Equal(t, note{"bread", "rye", 1}, notes["bread"])

	status, _ = r.ask(http.MethodPut, "/api/users/eye", "application/json", strings.NewReader(`{"password":"p","tags":"monitoring"}`))
	assert.Equal(t, http.StatusCreated, status)
	status, _ = r.askAs("eye", "p", http.MethodPut, "/api/curfew/notes/egg", "application/json", nil)
	assert.Equal(t, http.StatusUnauthorized, status)
	assert.NotContains(t, notes, "egg")
	assert.Eventually(t, func() bool { return strings.Contains(r.ok("audit", "search", "--reason", "changed"), "write note") }, time.Minute, 50*time.Millisecond)
}
