//go:build linux

package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"curfew/cmd/internal/node"
	"curfew/monitor/incident"
)

// onTerminal runs a command on a terminal of 80 columns, and returns what that shows, and what the command prints to stderr.
func onTerminal(t *testing.T, args ...string) (text, errText string, code int) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer keyboard.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	shown := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(keyboard) // it fails once nobody has the screen open
		shown <- string(all)
	}()
	var errOut strings.Builder
	code = Run(t.Context(), node.Build{}, args, screen, &errOut)
	require.NoError(t, screen.Close())
	return strings.ReplaceAll(<-shown, "\r\n", "\n"), errOut.String(), code
}

// listCommands are the words of all commands that list something and need no arguments, and of those like them.
func listCommands() (all [][]string) {
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		words := strings.Fields(c.CommandPath())[1:]
		if slices.Contains([]string{"list", "ls", "connections", "channels", "consumers", "status", "search"}, c.Name()) && c.ValidateArgs(nil) == nil && !c.Hidden {
			all = append(all, words)
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(Tree(node.Build{}))
	return all
}

// TestListsFitATerminal: at 80 columns no line of a list is wider, and the columns that matter are there, with their texts whole.
func TestListsFitATerminal(t *testing.T) {
	r := startRunning(t, "DATA_DIR="+t.TempDir())
	ch := r.dead(3)
	for i := range 9 {
		_, err := ch.QueueDeclare(fmt.Sprintf("orders.payment.captures.eu-central-%d", i), true, false, false, false, amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dead"})
		require.NoError(t, err)
	}
	_, err := ch.Consume("orders.payment.captures.eu-central-1", "payment-captures-worker", false, false, false, false, nil)
	require.NoError(t, err)
	r.ok("policy", "set", "captures", "^orders.payment.captures", `{"message-ttl": 86400000, "max-length": 100000, "dead-letter-exchange": "captures", "overflow": "reject-publish"}`)
	require.Eventually(t, func() bool { return strings.Count(r.ok("audit", "search"), "dead_lettered") == 3 }, time.Minute, 20*time.Millisecond)
	shows := map[string][]string{
		"queue list":   {"QUEUE +READY +UNACKED +AT RISK +LOST +TO DLQ", `\n/ +orders +(work +)?0 +0 +0 +0 +3`},
		"dlq list":     {"QUEUE +READY +UNACKED.* FROM\n", "orders.payment.captures.eu-central-0", "orders.payment.captures.eu-central-8"},
		"connections":  {"CONNECTION +CLIENT +(USER +)?(VHOST +)?STATE +(CONSUMERS +)?UNACKED"},
		"channels":     {`CHANNEL +(USER +)?STATE`, ` \(1\) `},
		"consumers":    {"QUEUE +CLIENT +UNACKED +OLDEST +PAST"},
		"audit search": {"AT +WHAT +(?:VHOST +)?QUEUE +MESSAGE-ID +LATE .*OUTCOME +TO", `s ago +expired +(?:/ +)?orders +m\d .*dead_lettered +orders.dead\n`},
		"policy list":  {`"message-ttl":86400000`, `"overflow":"reject-\s*publish"`},
		"status":       {"2 dead|3 dead letters"},
	}
	for _, words := range listCommands() {
		name := strings.Join(words, " ")
		text, errText, code := onTerminal(t, append(words, r.flags...)...)
		assert.Contains(t, []int{0, exitUnhealthy, exitNotFound}, code, "%s: %s", name, errText) // not found: it is about an external RabbitMQ, or there are no notes
		for line := range strings.Lines(text) {
			assert.LessOrEqual(t, ansi.StringWidth(strings.TrimSuffix(line, "\n")), 80, "%s: %s", name, line)
		}
		for _, want := range shows[name] {
			assert.Regexp(t, want, text, name)
		}
		if name == "status" {
			assert.LessOrEqual(t, len(errText), 80, "what stands above is not said again: %s", errText)
		}
		delete(shows, name)
	}
	assert.Empty(t, shows, "no such commands")
}

// TestFiveIncidentsOnOneScreen: the list fits 24 lines of 80 columns and names the command that says what to do, with advice that can be copied.
func TestFiveIncidentsOnOneScreen(t *testing.T) {
	const advice = "curfew queue declare orders.payment.captures.dead --vhost shop && curfew policy set keep-expired-orders.payment.captures '^orders\\.payment\\.captures$' '{\"dead-letter-exchange\":\"\"}' --apply-to queues"
	var all incident.Overview
	for i := range 5 {
		losing := time.Now().Add(-time.Minute)
		all.Incidents = append(all.Incidents, incident.Incident{
			ID: fmt.Sprintf("3f9a01c2b47%d", i), Condition: "deadline_missed", Level: incident.Critical, Since: time.Now().Add(-7 * time.Minute), Losing: &losing, Queues: 31,
			Summary: "Messages expire unconsumed: orders.payment.captures (vhost shop): 1,234 messages lost (expired); 300 messages at risk: nobody consumes, the first expires in 3 s; and 30 more queues, 5,000 in all",
			Do:      "Add consumers or make them faster, or give messages more time. To keep what expires in orders.payment.captures from now on: `" + advice + "`",
			Command: "curfew queue show orders.payment.captures --vhost shop", Page: "/queue",
			Worst:   []incident.Affected{{VHost: "shop", Queue: "orders.payment.captures", Text: "1,234 messages lost (expired)"}},
			History: []incident.Entry{{At: time.Now(), Text: "began: Messages expire unconsumed"}},
		})
	}
	all.Over = []incident.Incident{{ID: "over", Level: incident.Warning, Summary: "Messages were at risk", Ended: &time.Time{}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		assert.NoError(t, json.NewEncoder(w).Encode(all))
	}))
	defer server.Close()
	run := func(args ...string) (string, string, int) {
		text, hint, code := onTerminal(t, append(args, "--url", server.URL, "--color", "never")...)
		for line := range strings.Lines(text) {
			assert.True(t, ansi.StringWidth(strings.TrimSuffix(line, "\n")) <= 80 || strings.Contains(line, "'{") || args[len(args)-1] == "json", line)
		}
		return text, hint, code
	}

	text, hint, code := run("incident", "ls")
	require.Zero(t, code)
	assert.LessOrEqual(t, strings.Count(text+hint, "\n"), 24, text)
	assert.Equal(t, "curfew incident show says what to do about each\n", hint)

	text, _, code = run("incident", "show", "3f9a01c2b472", "over")
	require.Zero(t, code)
	for _, want := range []string{`(?m)^3f9a01c2b472  critical, 7m ago, losing messages since .* UTC$`, `(?m)^do  +Add consumers`, "(?m)^see  +curfew queue show orders.payment.captures --vhost shop$",
		`(?m)^queue  +orders.payment.captures \(vhost shop\): 1,234`, ` UTC +began: `, `(?m)^over  +over, `} {
		assert.Regexp(t, want, text)
	}
	text, _, _ = run("incident", "show")
	assert.Equal(t, 5, strings.Count(text, "critical, 7m ago"), text)
	_, errText, code := run("incident", "show", "none")
	assert.Equal(t, exitNotFound, code)
	assert.Contains(t, errText, "there is no such incident; curfew incident ls --over lists them")
	_, hint, _ = run("incident", "ls", "-o", "json")
	assert.Empty(t, hint)
}
