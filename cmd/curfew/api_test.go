package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/scheduler/storetest"
)

// running is `curfew serve` and the flags by which commands find it.
type running struct {
	t     *testing.T
	amqp  string
	flags []string
}

func startRunning(t *testing.T, settings ...string) *running {
	t.Helper()
	setenv(t)
	web := storetest.FreeAddr()
	p := startServe(t, append(settings, "HTTP_ADDR="+web, "PASSWORD=other")...)
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("other\n"), 0o600))
	return &running{t, strings.Replace(p.line(t, "AMQP"), "PASSWORD", "other", 1), []string{"--url", "http://" + web, "--user", "guest", "--password-file", password}}
}

// ok runs a command that has to succeed, and returns what it prints.
func (r *running) ok(args ...string) string {
	r.t.Helper()
	code, out, errOut := runCommand(r.t, append(args, r.flags...)...)
	require.Zero(r.t, code, errOut)
	return out
}

// fails runs a command that has to fail, and returns what it says.
func (r *running) fails(args ...string) string {
	r.t.Helper()
	code, out, errOut := runCommand(r.t, append(args, r.flags...)...)
	require.Contains(r.t, []int{exitFailed, exitNotFound}, code, out)
	return errOut
}

func TestPolicyCommands(t *testing.T) {
	r := startRunning(t)
	conn, err := amqp091.Dial(r.amqp)
	require.NoError(t, err)
	defer conn.Close()
	ch, err := conn.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare("orders.a", false, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	for range 3 {
		c, err := ch.PublishWithDeferredConfirm("", "orders.a", false, false, amqp091.Publishing{})
		require.NoError(t, err)
		require.True(t, c.Wait())
	}

	ttl := []string{"policy", "set", "ttl", `^orders\.`, `{"message-ttl":600000}`, "--apply-to", "queues", "--priority", "3"}
	assert.Equal(t, "QUEUES  EARLIER  EXPIRED\n1       3        0\n", r.ok(append(ttl, "--dry-run")...))
	assert.Equal(t, "NAME  PATTERN  APPLY TO  PRIORITY  DEFINITION\n", r.ok("policy", "list"))
	assert.Empty(t, r.ok(ttl...))
	assert.JSONEq(t, `{"queues":1,"earlier":3,"expired":0}`, r.ok(append(ttl, "--retroactive", "-o", "json")...))
	assert.Equal(t, "NAME  PATTERN    APPLY TO  PRIORITY  DEFINITION\nttl   ^orders\\.  queues    3         {\"message-ttl\":600000}\n", r.ok("policy", "list"))
	assert.JSONEq(t, `[{"name":"ttl","pattern":"^orders\\.","apply-to":"queues","priority":3,"definition":{"message-ttl":600000}}]`, r.ok("policy", "list", "-o", "json"))

	r.ok("policy", "set", "--operator", "op", ".*", `{"max-length":2}`)
	q, err := ch.QueueDeclarePassive("orders.a", false, false, false, false, nil)
	require.NoError(t, err)
	assert.Equal(t, 2, q.Messages)
	assert.Contains(t, r.ok("policy", "list", "--operator"), "op    .*")
	r.ok("policy", "clear", "--operator", "op")
	assert.Contains(t, r.fails("policy", "clear", "--operator", "op"), "Not Found (HTTP 404)")
	assert.Equal(t, "curfew: Validation failed\n\n[{<<\"foo\">>,1}] are not recognised policy settings (HTTP 400)\n", r.fails("policy", "set", "x", "a", `{"foo":1}`))
	assert.Contains(t, r.fails("policy", "list", "--vhost", "nope"), "HTTP 404")

	_, err = ch.QueueDeclare(strings.Repeat("a", 200)+"-", false, false, false, false, nil)
	require.NoError(t, err)
	for _, how := range [][]string{nil, {"--operator"}, {"--retroactive"}, {"--retroactive", "--dry-run"}} {
		assert.Contains(t, r.fails(append([]string{"policy", "set", "slow", "^(?=(a+)+$)(a+)+$", `{"max-length":1}`}, how...)...),
			"pattern of policy 'slow' takes too long: more than 100000 steps of matching for the name 'aaaa")
	}
}

func TestDefinitionsCommands(t *testing.T) {
	start := filepath.Join(t.TempDir(), "start.json")
	require.NoError(t, os.WriteFile(start, []byte(`{"vhosts":[{"name":"a/b"}],"permissions":[{"user":"guest","vhost":"a/b","configure":".*","write":".*","read":".*"}],
		"queues":[{"name":"q","vhost":"/","durable":true,"auto_delete":false,"arguments":{}}]}`), 0o600))
	r := startRunning(t, "DEFINITIONS="+start)
	file := filepath.Join(t.TempDir(), "out.json")
	r.ok("definitions", "export", file)
	var exported map[string]any
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &exported))
	assert.Len(t, exported["queues"], 1, "imported at the start")
	assert.JSONEq(t, string(text), r.ok("definitions", "export"))
	assert.Equal(t, "  WHAT\n", r.ok("definitions", "diff", file))

	more := filepath.Join(t.TempDir(), "more.json")
	require.NoError(t, os.WriteFile(more, []byte(`{"queues":[{"name":"more","durable":true}]}`), 0o600))
	r.ok("definitions", "import", more, "--vhost", "a/b")
	assert.Contains(t, r.ok("definitions", "export", "--vhost", "a/b"), `"more"`)
	said := r.fails("definitions", "diff", more)
	assert.Contains(t, said, "1 differences")
	require.NoError(t, os.WriteFile(more, []byte(`{"queues":[{"name":"fine","vhost":"/"},{"name":"wrong","vhost":"/","arguments":{"x-max-length":-1}}]}`), 0o600))
	assert.Contains(t, r.fails("definitions", "import", more), "invalid arg 'x-max-length' for queue 'wrong' in vhost '/': {value_negative,-1} (HTTP 400)")
	assert.NotContains(t, r.ok("definitions", "export"), `"fine"`, "nothing is taken of a wrong file")
	require.NoError(t, os.WriteFile(more, []byte(`{`), 0o600))
	assert.Contains(t, r.fails("definitions", "import", more), "more.json: definitions: not a JSON object")
}

func TestWrongDefinitionsStopTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wrong.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"queues":[{"name":"q","vhost":"nope"}]}`), 0o600))
	code, _, errOut := runBinary(t, []string{"serve"}, "AMQP_ADDR=127.0.0.1:0", "HTTP_ADDR=127.0.0.1:0", "OPS_ADDR=127.0.0.1:0", "DATA_DIR=", "DEFINITIONS="+file)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errOut, "with CURFEW_DEFINITIONS="+file+": queue 'q' is in virtual host 'nope', which does not exist")
}

func TestAPICommandsWithoutAnAnswer(t *testing.T) {
	setenv(t, "CURFEW_HTTP_ADDR="+storetest.FreeAddr())
	code, _, errOut := runCommand(t, "policy", "list")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errOut, "is Curfew running there?")
	for text, args := range map[string][]string{
		`unknown command "sit"; curfew policy set, clear or list`:        {"policy", "sit"},
		`unknown command "x"; curfew definitions export, import or diff`: {"definitions", "x"},
		"curfew policy set takes a name, a pattern and a definition":     {"policy", "set", "a"},
		"the definition has to be a JSON object":                         {"policy", "set", "a", "b", "[]"},
		`-o takes table or json, not "xml"`:                              {"policy", "list", "-o", "xml"},
		"curfew definitions import takes a file":                         {"definitions", "import"},
	} {
		code, _, errOut := runCommand(t, args...)
		assert.Equal(t, exitUsage, code, "%v", args)
		assert.Contains(t, errOut, text)
	}
}

// TestPolicyNotInForceIsListed: it is said beside the list, which scripts read.
func TestPolicyNotInForceIsListed(t *testing.T) {
	setenv(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`[{"name":"p","pattern":"a","apply-to":"all","priority":0,"definition":{},"not_in_force":"takes too long"}]`))
	}))
	defer s.Close()
	code, out, errOut := runCommand(t, "policy", "list", "--url", s.URL)
	assert.Zero(t, code)
	assert.Equal(t, "NAME  PATTERN  APPLY TO  PRIORITY  DEFINITION\np     a        all       0         {}\n", out)
	assert.Equal(t, "policy p is not in force: takes too long\n", errOut)
	_, out, _ = runCommand(t, "policy", "list", "--url", s.URL, "-o", "json")
	assert.Contains(t, out, `"not_in_force"`)
}

// TestForeignAnswers: what is not the API's is said as it is.
func TestForeignAnswers(t *testing.T) {
	setenv(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			http.Error(w, "<html>", http.StatusBadGateway)
			return
		}
		_, _ = w.Write([]byte("<html>"))
	})}
	go s.Serve(l)
	defer s.Close()
	code, _, errOut := runCommand(t, "policy", "list", "--url", "http://"+l.Addr().String())
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errOut, "the answer is not what it should be")
	_, _, errOut = runCommand(t, "policy", "clear", "x", "--url", "http://"+l.Addr().String()+"/")
	assert.Contains(t, errOut, "502 Bad Gateway (HTTP 502)")
}
