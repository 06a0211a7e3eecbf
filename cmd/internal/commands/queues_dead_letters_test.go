package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDeadLetterCommands(t *testing.T) {
	r := startRunning(t)
	r.dead(4)
	assert.Equal(t, "QUEUE        READY  UNACKED  BYTES  PURPOSE       FROM\norders.dead  4      0        28     dead-letters  orders\n", r.ok("dlq", "list"))
	assert.Contains(t, r.ok("dlq", "groups", "orders.dead"), "expired  orders  -         4         4")
	assert.Contains(t, r.ok("dlq", "groups", "orders.dead", "--by-type"), "REASON   QUEUE   EXCHANGE  TYPE  MESSAGES")
	assert.Contains(t, r.ok("dlq", "peek", "orders.dead", "-n", "1"), `order\n0`)
	found := r.ok("dlq", "search", "orders.dead", "--filter", `body contains "2" && died > ago("1h") && reason == "expired" && headers["x-first-death-queue"] == "orders"`)
	assert.Equal(t, 2, strings.Count(found, "\n"), found)
	assert.Contains(t, found, "m2")
	assert.Contains(t, r.exits(exitUsage, "dlq", "search", "orders.dead", "--filter", `body matches "("`), "--filter, character 14: the pattern is not an RE2 expression")
	assert.Contains(t, r.exits(exitUsage, "dlq", "purge", "orders.dead", "--filter", `reason == "expire"`), "want one of expired, rejected, maxlen, delivery_limit")
	assert.Contains(t, r.exits(exitUsage, "dlq", "purge", "orders.dead", "--from-queue", "orders"), `unknown flag: --from-queue`)
	assert.Contains(t, r.exits(exitNotFound, "dlq", "groups", "nothing"), "check the name and --vhost")

	newest := r.ok("dlq", "search", "orders.dead", "--newest", "-n", "1")
	assert.Contains(t, newest, "m3")
	assert.NotContains(t, newest, "m2")
	assert.Equal(t, 2, strings.Count(r.ok("dlq", "search", "orders.dead", "--filter", `message_id == "m2"`), "\n"))
	whole := r.ok("dlq", "show", "orders.dead", "1")
	assert.Regexp(t, `message_id +m0`, whole)
	assert.Contains(t, whole, "header x-first-death-exchange  \nheader x-first-death-queue     orders\n")
	assert.Regexp(t, `died +.*"expired" in "orders", 1 time,`, whole)
	assert.Equal(t, "order\n0", r.ok("dlq", "show", "orders.dead", "1", "--raw"))
	r.exits(exitNotFound, "dlq", "show", "orders.dead", "99")
	r.ok("dlq", "filters", "orders.dead", "--save", "night", "--filter", `message_id == "m2" && died > ago("1h")`)
	assert.Regexp(t, `night +message_id == "m2" && died > ago\("1h"\)`, r.ok("dlq", "filters", "orders.dead"))
	assert.Equal(t, 2, strings.Count(r.ok("dlq", "search", "orders.dead", "--saved", "night"), "\n"))
	assert.Contains(t, r.exits(exitFailed, "dlq", "search", "orders.dead", "--saved", "day"), "curfew dlq filters orders.dead --vhost / lists them")
	r.ok("dlq", "filters", "orders.dead", "--delete", "night")
	r.exits(exitNotFound, "dlq", "filters", "orders.dead", "--delete", "night")

	file := filepath.Join(t.TempDir(), "dead.jsonl")
	r.ok("dlq", "export", "orders.dead", "--filter", `message_id == "m3"`, "-f", file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(text), "\n"))
	r.exits(exitFailed, "dlq", "export", "orders.dead", "-f", file)
	assert.Contains(t, r.exits(exitUnconfirmed, "dlq", "purge", "orders.dead", "--filter", `message_id == "m3"`), "1 messages match; to delete them add --confirm 1")
	assert.Contains(t, r.exits(exitUnconfirmed, "dlq", "purge", "orders.dead", "--filter", `message_id == "m3"`, "--confirm", "2"), "--confirm 1")
	assert.Contains(t, r.exits(exitUnconfirmed, "dlq", "purge", "orders.dead", "--filter", `message_id == "m3"`, "--confirm", "0"), "--confirm 1")
	for _, c := range []string{"dlq", "queue"} {
		_, help, _ := runCommand(t, c, "purge", "--help")
		assert.NotContains(t, help, "default -1")
	}
	asked := r.exits(exitUnconfirmed, "dlq", "purge", "orders.dead", "--filter", `message_id == "m3"`)
	_, token, has := strings.Cut(asked, "--confirm ")
	require.True(t, has)
	token, _, _ = strings.Cut(token, " ")
	require.Regexp(t, `^1@[0-9a-z]+-[0-9a-z.]+-[0-9a-z]+$`, token)
	assert.Contains(t, r.exits(exitUsage, "dlq", "purge", "orders.dead", "--confirm", "1@x"), "not a position in a queue")
	assert.Equal(t, "DELETED\n1\n", r.ok("dlq", "purge", "orders.dead", "--filter", `message_id == "m3"`, "--confirm", token))
	assert.Equal(t, "IMPORTED\n1\n", r.ok("dlq", "import", "orders.dead", file))
	assert.Contains(t, r.ok("dlq", "export", "orders.dead", "--filter", `message_id == "m3"`), string(text)[strings.Index(string(text), `"properties"`):], "nothing of it is lost")

	draft := r.ok("dlq", "edit", "orders.dead", "1")
	assert.Contains(t, draft, `order\n0`)
	changed := filepath.Join(t.TempDir(), "draft.json")
	require.NoError(t, os.WriteFile(changed, []byte(strings.Replace(draft, `order\n0`, `order\nnew`, 1)), 0o600))
	r.exits(exitNotFound, "dlq", "edit", "orders.dead", "99", "-f", changed)
	review := r.ok("dlq", "edit", "orders.dead", "1", "-f", changed, "--dry-run")
	assert.Contains(t, review, "-0\n+new")
	assert.Regexp(t, `orders +1 +none`, review)
	r.ok("dlq", "edit", "orders.dead", "1", "-f", changed)
	r.waits("orders.dead", 4) // it expires again
	assert.Contains(t, r.ok("dlq", "search", "orders.dead", "--filter", `body contains "new"`), "m0")

	dry := r.ok("dlq", "replay", "orders.dead", "--dry-run", "--ttl", "none", "--filter", `message_id == "m1"`)
	assert.Contains(t, dry, "dry run")
	assert.Contains(t, dry, "TO QUEUE")
	r.waits("orders.dead", 4)
	assert.Contains(t, r.ok("dlq", "replay", "orders.dead", "--ttl", "10m", "--limit", "3"), "done")
	r.waits("orders", 3)
	assert.Contains(t, r.fails("dlq", "replay", "orders.dead", "--exchange", "nowhere"), "there is no 'nowhere' in vhost '/' (HTTP 400)")
	assert.Contains(t, r.ok("dlq", "replay", "orders.dead", "--exchange", "amq.direct"), "unroutable=1")
	assert.Equal(t, 3, strings.Count(r.ok("dlq", "replays"), "\n"))
	for _, what := range []string{"cancel", "resume"} {
		assert.Contains(t, r.exits(exitNotFound, "dlq", what, "none"), `there is no replay "none"; curfew dlq replays lists them`)
	}
	assert.Contains(t, r.exits(exitUnconfirmed, "dlq", "purge", "orders.dead", "--filter", `message_id == "none"`), "no messages match: there is nothing to delete")
	assert.Contains(t, r.exits(exitUsage, "dlq", "replay", "orders.dead", "--ttl", "soon"), "--ttl:")
}

// TestJSONHasWholeBodies: a program that reads JSON gets all of a body, or learns that it does not.
func TestJSONHasWholeBodies(t *testing.T) {
	r := startRunning(t)
	ch := r.dead(0)
	body := strings.Repeat("x", 5_000)
	require.NoError(t, ch.Publish("", "orders.dead", false, false, amqp091.Publishing{Body: []byte(body)}))
	r.waits("orders.dead", 1)
	for _, command := range [][]string{{"queue", "peek"}, {"dlq", "peek"}} {
		for truncate, want := range map[string]string{"": body, "--truncate=100": body[:100]} {
			args := append(slices.Clone(command), "orders.dead", "-o", "json")
			if truncate != "" {
				args = append(args, truncate)
			}
			var list []struct {
				Payload   string `json:"payload"`
				Truncated bool   `json:"payload_truncated"`
			}
			require.NoError(t, json.Unmarshal([]byte(r.ok(args...)), &list))
			require.Equal(t, want, list[0].Payload, args)
			require.Equal(t, truncate != "", list[0].Truncated, args)
		}
	}
}

// TestCommandsNameTheVirtualHost: what a command suggests is for the queue that it is about, and not for the one of that name in the first virtual host.
func TestCommandsNameTheVirtualHost(t *testing.T) {
	r := startRunning(t)
	r.ok("vhost", "add", "it's")
	in := []string{"--vhost", "it's"}
	r.ok(append(in, "declare", "queue", "gone", "--ttl", "1ms", "--dlx", "missing")...)
	r.ok(append(in, "publish", "gone", "x")...)
	const flag = `--vhost 'it'\''s'`
	require.Eventually(t, func() bool {
		return strings.Contains(r.ok("dlq", "list"), "(parked; curfew dlq groups curfew.undeliverable "+flag+" says why)")
	}, time.Minute, 100*time.Millisecond)
	hint := r.exits(0, append(in, "dlq", "groups", "curfew.undeliverable")...)
	assert.Contains(t, hint, "then: curfew dlq replay curfew.undeliverable "+flag+` --to onward --filter 'reason == "expired" && queue == "gone"`)
	assert.Contains(t, r.exits(exitFailed, append(in, "dlq", "search", "gone", "--saved", "day")...), "curfew dlq filters gone "+flag+" lists them")
	for range 2 {
		r.ok(append(in, "publish", "curfew.undeliverable", "x", "--message-id", "same", "--ttl", "1h")...)
	}
	assert.Contains(t, r.exits(exitFailed, append(in, "deadlines", "extend", "curfew.undeliverable", "--by", "1m", "--message-id", "same")...), "(curfew dlq search curfew.undeliverable "+flag+" --filter")
}
