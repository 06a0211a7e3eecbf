package commands

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/node"
)

var backLine = regexp.MustCompile(`(?m)^  order-\d +lived +\S+  dead-lettered \(expired\) +[0-9.]+ ms late$`)

func TestDemo(t *testing.T) {
	t.Parallel()
	code, out, errOut := runBinary(t, []string{"demo"}, "AMQP_ADDR=nonsense") // it reads no variable
	require.Zero(t, code, "%s\n%s", out, errOut)
	n := len(TTLs)
	assert.Len(t, backLine.FindAllString(out, -1), n, out)
	assert.Contains(t, out, fmt.Sprintf("\n%d of %d back, the latest ", n, n))
	assert.Contains(t, out, "the one-hour message is still queued.")
	assert.Contains(t, out, "curfew serve")
}

// TestDemoFillsARunningOne: dead letters of four causes, deadlines, a consumer that holds, an alert. When it is stopped, nothing is left.
func TestDemoFillsARunningOne(t *testing.T) {
	r := startRunning(t)
	r.ok("declare", "queue", "prices")
	at := r.flags[1]
	login := r.flags[2:]
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, errOut bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- Run(ctx, node.Build{}, append([]string{"demo", "--against", at}, login...), &out, &errOut)
	}()
	missing := []string{`"reason": "expired"`, `"reason": "rejected"`, `"reason": "maxlen"`, `"reason": "delivery_limit"`}
	require.Eventually(t, func() bool {
		code, groups, _ := runCommand(t, append([]string{"dlq", "groups", "dead-letters", "--vhost", "demo", "-o", "json"}, r.flags...)...)
		missing = slices.DeleteFunc(missing, func(text string) bool { return code == 0 && strings.Contains(groups, text) })
		return len(missing) == 0
	}, 2*time.Minute, 100*time.Millisecond, "%v", missing)
	assert.Regexp(t, `(?m)^time to live +45s \(policy sessions\)$`, r.ok("queue", "show", "sessions", "--vhost", "demo"))
	assert.Contains(t, r.ok("connections"), "demo: reports worker")
	require.Eventually(t, func() bool { return strings.Contains(r.ok("incident", "ls"), "orders (vhost demo)") }, time.Minute, 100*time.Millisecond)
	stop()
	assert.Zero(t, <-ended, errOut.String())
	assert.Contains(t, out.String(), "the dashboard, "+at+"/")
	assert.Contains(t, r.ok("queue", "list"), "prices", "nothing else is touched")
	assert.Contains(t, r.fails("queue", "list", "--vhost", "demo"), "Not Found")
}

// TestDemoIsCleaned: --clean deletes what a demo that was killed left, and never more than that.
func TestDemoIsCleaned(t *testing.T) {
	r := startRunning(t)
	against := append([]string{"demo", "--against", r.flags[1]}, r.flags[2:]...)
	code, out, errOut := runCommand(t, append(against, "--clean")...)
	assert.Zero(t, code, errOut)
	assert.Equal(t, "there is nothing to delete\n", out)
	code, _, errOut = runCommand(t, "demo", "--against", r.flags[1], "--for", "1000h")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "at most 24h")
	code, _, errOut = runCommand(t, "demo", "--against", "https://curfew.example.org")
	assert.Equal(t, exitUnconfirmed, code)
	assert.Contains(t, errOut, "is on another machine")
}
