package commands

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
	assert.Equal(t, "set policy \"ttl\" (vhost \"/\")\n", r.ok(ttl...))
	assert.JSONEq(t, `{"queues":1,"earlier":3,"expired":0,"names":["orders.a"],"dead_letter_queues":[]}`, r.ok(append(ttl, "--retroactive", "-o", "json")...))
	assert.Equal(t, "NAME  PATTERN    APPLY TO  PRIORITY  DEFINITION\nttl   ^orders\\.  queues    3         {\"message-ttl\":600000}\n", r.ok("policy", "list"))
	assert.JSONEq(t, `[{"vhost":"/","name":"ttl","pattern":"^orders\\.","apply-to":"queues","priority":3,"definition":{"message-ttl":600000}}]`, r.ok("policy", "list", "-o", "json"))

	typed := []string{"policy", "set", "typed", `^(a<b|c&d>)$`, `{"dead-letter-exchange":"","dead-letter-routing-key":"<a&b>"}`}
	r.ok(append(typed, "--dry-run")...)
	r.ok(append(typed, "--retroactive", "--dry-run")...)
	r.ok(typed...)
	for _, how := range [][]string{nil, {"-o", "json"}} {
		out := r.ok(append([]string{"policy", "list"}, how...)...)
		assert.Contains(t, out, typed[3])
		assert.Contains(t, out, `"<a&b>"`)
	}
	assert.Contains(t, r.ok("policy", "list"), typed[4])
	r.ok("queue", "declare", "typed", "--arg", `x-dead-letter-routing-key=<a&b>`, "--arg", "x-dead-letter-exchange=")
	assert.Contains(t, r.ok("queue", "show", "typed"), "<a&b>")
	r.ok("policy", "clear", "typed")

	for name, args := range map[string]amqp091.Table{"bills": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "bills.dead"}, "bills.dead": nil} {
		_, err = ch.QueueDeclare(name, false, false, false, false, args)
		require.NoError(t, err)
	}
	code, _, notes := runCommand(t, append([]string{"policy", "set", "bills", "^bills", `{"message-ttl":600000}`, "--dry-run"}, r.flags...)...)
	assert.Zero(t, code)
	assert.Contains(t, notes, "Messages in these queues get a time to live: bills, bills.dead.\nDead letters go to bills.dead: with this policy they expire there like any message.")

	r.ok("policy", "set", "--operator", "op", ".*", `{"max-length":2}`)
	q, err := ch.QueueDeclarePassive("orders.a", false, false, false, false, nil)
	require.NoError(t, err)
	assert.Equal(t, 2, q.Messages)
	assert.Contains(t, r.ok("policy", "list", "--operator"), "op    .*")
	assert.Equal(t, r.ok("policy", "list", "--operator"), r.ok("policy", "--operator", "list"))
	assert.JSONEq(t, `{"operation":"clear_operator_policy","vhost":"/","policy":"op"}`, r.ok("policy", "clear", "--operator", "op", "-o", "json"))
	assert.Contains(t, r.fails("policy", "clear", "--operator", "op"), `"op" was not found in virtual host "/" (HTTP 404)`)
	assert.Equal(t, "curfew: Validation failed\n\n[{<<\"foo\">>,1}] are not recognised policy settings (HTTP 400)\n", r.fails("policy", "set", "x", "a", `{"foo":1}`))
	assert.Contains(t, r.fails("policy", "list", "--vhost", "nope"), "HTTP 404")

	for _, how := range [][]string{nil, {"--operator"}, {"--retroactive"}, {"--retroactive", "--dry-run"}} {
		assert.Contains(t, r.fails(append([]string{"policy", "set", "behind", "(?<!x)$", `{"max-length":1}`}, how...)...), "look-behind is not supported: for names that do not end with x")
	}
}

// TestPolicyNotInForceIsListed with the reason; without such policies there is no column for it.
func TestPolicyNotInForceIsListed(t *testing.T) {
	setenv(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`[{"name":"p","pattern":"a","apply-to":"all","priority":0,"definition":{},"not_in_force":"is refused"}]`))
	}))
	defer s.Close()
	code, out, _ := runCommand(t, "policy", "list", "--url", s.URL)
	assert.Zero(t, code)
	assert.Equal(t, "NAME  PATTERN  APPLY TO  PRIORITY  DEFINITION  NOT IN FORCE\np     a        all       0         {}          is refused\n", out)
	_, out, _ = runCommand(t, "policy", "list", "--url", s.URL, "-o", "json")
	assert.Contains(t, out, `"not_in_force"`)
}

// TestChangedPolicyIsTold: what changes in a policy is told from what to what, whatever it is.
func TestChangedPolicyIsTold(t *testing.T) {
	r := startRunning(t)
	r.ok("policy", "set", "short", "^a", `{"max-length": 5}`, "--apply-to", "queues")
	r.ok("policy", "set", "short", "^b", `{"max-length": 5}`, "--priority", "3")
	r.ok("vhost", "add", "shop")
	r.ok("declare", "queue", "old", "--vhost", "shop")
	r.ok("delete", "queue", "old", "--vhost", "shop")
	r.ok("user", "permissions", "set", "guest", ".*", ".*", ".*", "--vhost", "shop")
	var past struct {
		Marks []struct {
			Text string `json:"text"`
		} `json:"marks"`
	}
	require.Eventually(t, func() bool {
		_, body := r.ask("GET", "/api/curfew/history?span=1m", "", nil)
		require.NoError(t, json.Unmarshal([]byte(body), &past))
		var told []string
		for _, m := range past.Marks {
			told = append(told, m.Text)
		}
		all := strings.Join(told, "\n")
		return strings.Contains(all, "policy set by guest: short (max-length 5)") && strings.Contains(all, "virtual host set by guest: shop\nqueue deleted by guest: old (vhost shop)") &&
			strings.Contains(all, "permission set by guest: guest (vhost shop)") &&
			strings.Contains(all, `policy set by guest: short (apply-to "queues" → "all", pattern "^a" → "^b", priority 0 → 3)`)
	}, time.Minute, 100*time.Millisecond)
}
