package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"curfew/broker/deadline"
)

func TestParseWatch(t *testing.T) {
	w, err := ParseWatch("off:retry-test, keep:retry-*,audit ,observe:*")
	require.NoError(t, err)
	for queue, want := range map[string]Mode{"retry-1": Keep, "retry-": Keep, "audit": Observe, "orders": Observe} {
		r, ok := w.Rule("/", queue)
		require.True(t, ok, queue)
		require.Equal(t, want, r.Mode, queue)
		require.Equal(t, defaultRule().Budget, r.Budget)
	}
	for _, queue := range []string{"retry-test", "curfew.tap.x"} {
		_, ok := w.Rule("/", queue)
		require.False(t, ok, queue)
	}
	names, patterns := w.Names()
	require.Equal(t, []string{"audit"}, names)
	require.Equal(t, []string{"retry-*", "*"}, patterns)
	w, err = LoadWatch("observe:/jobs")
	require.NoError(t, err)
	require.Equal(t, "/jobs", w[0].Pattern, "with a mode it is not a path")
}

func TestParseWatchErrors(t *testing.T) {
	for text, want := range map[string]string{
		"hold:retry-*":                     `"hold:retry-*": unknown mode "hold": want observe, keep, delay or off`,
		"keep:":                            `"keep:": the name of the queue is missing`,
		"a,,b":                             "the name of the queue is missing",
		"watch.yaml":                       "write observe:watch.yaml",
		"keep:" + strings.Repeat("x", 256): "at most 255 bytes",
		"keep:caf\xe9*":                    `"keep:caf\xe9*": the name of a queue is UTF-8, and this one is not`,
	} {
		_, err := LoadWatch(text)
		require.ErrorContains(t, err, "CURFEW_WATCH: ")
		require.ErrorContains(t, err, want)
	}
	for _, path := range []string{"/does/not/exist", "./does-not-exist", "../does-not-exist"} {
		_, err := LoadWatch(path)
		require.ErrorContains(t, err, "CURFEW_WATCH: open "+path)
	}
	w, err := LoadWatch("")
	require.NoError(t, err)
	require.Equal(t, DefaultWatch(), w)
}

func TestParseWatchFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "watch.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
queues:
  - queue: retry-*
    vhost: shop
    mode: keep
    budget: {messages: 50000, bytes: 512MiB, holds_per_second: 2000}
    assume: quorum
  - queue: "*"
`), 0o600))
	w, err := LoadWatch(file)
	require.NoError(t, err)
	require.Equal(t, Watch{
		{VHost: "shop", Pattern: "retry-*", Mode: Keep, Budget: Budget{50000, 512 << 20, 2000}, Assume: Quorum},
		DefaultWatch()[0],
	}, w)
	for vhost, mode := range map[string]Mode{"shop": Keep, "/": Observe} {
		r, _ := w.Rule(vhost, "retry-1")
		require.Equal(t, mode, r.Mode, "the first rule is for one virtual host, the second for any")
	}
}

func TestBackoff(t *testing.T) {
	w, err := ParseWatchFile([]byte(`queues: [{queue: retry.delay, mode: retry, backoff: [1s, 5s], jitter: 10%, park: "{queue}.failed"}]`))
	require.NoError(t, err)
	b := w[0].Backoff
	require.Equal(t, Backoff{Steps: []deadline.Millis{1000, 5000}, Jitter: 10, Park: "{queue}.failed"}, b)
	require.Equal(t, "jobs.failed", b.ParkOf("jobs"))
	wait, parks := b.Wait(2, 7)
	require.False(t, parks)
	require.InDelta(t, 5250, wait.Milliseconds(), 250)
	_, parks = b.Wait(3, 7)
	require.True(t, parks)
	b.Park, b.Jitter = "", 0
	wait, parks = b.Wait(99, 7)
	require.False(t, parks)
	require.Equal(t, 5*time.Second, wait, "the last one counts for all further times")
	require.False(t, b.Linear())
	require.True(t, (&Backoff{Steps: []deadline.Millis{1000, 2000, 2500}}).Linear())
	_, err = ParseWatch("retry:a")
	require.ErrorContains(t, err, "mode retry needs a back-off")
}

func TestParseWatchFileErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "no rule",
		"queues: [{mode: keep}]":           "queues[0] (): queue: the name of the queue is missing",
		"queues: [{queue: a, mode: hold}]": `queues[0] (a): mode: "hold" is invalid: want observe or keep or off or delay`,
		"queues: [{queue: a, keep: true}]": "field keep not found",
		"queues: [{queue: a, budget: {messages: 0}}]":                       "budget.messages: 0 is invalid: want 1 to 1000000",
		"queues: [{queue: a, budget: {holds_per_second: -1}}]":              "budget.holds_per_second: -1 is invalid",
		"queues: [{queue: a, mode: delay, budget: {bytes: 1GiB}}]":          "budget.bytes and budget.holds_per_second are for mode keep, and this is delay",
		"queues: [{queue: a, mode: retry, budget: {holds_per_second: 2}}]":  "are for mode keep, and this is retry",
		"queues: [{queue: a, budget: {bytes: many}}]":                       `budget.bytes: "many" is invalid`,
		"queues: [{queue: a, budget: {bytes: 99999999999GiB}}]":             "budget.bytes",
		"queues: [{queue: a, mode: retry}]":                                 "which needs a backoff",
		"queues: [{queue: a, mode: keep, park: b}]":                         "are for mode retry",
		"queues: [{queue: a, mode: retry, backoff: [0s]}]":                  `backoff: ["0s"] is invalid: want 1 to 16 waits`,
		"queues: [{queue: a, mode: retry, backoff: [1s], jitter: 101%}]":    `jitter: "101%" is invalid: want 0% to 100%`,
		"queues: [{queue: a, mode: retry, backoff: [1s], park: '{queue}'}]": "park: \"{queue}\" is invalid",
		"queues: [{queue: a, mode: retry, backoff: [1s], cancel: any}]":     "cancel and exchange are for mode delay",
		"queues: [{queue: a, assume: stream}]":                              `assume: "stream" is invalid: want classic or quorum`,
	} {
		_, err := ParseWatchFile([]byte(text))
		require.ErrorContains(t, err, want, text)
	}
}

// TestGlob compares the matcher with a regular expression.
func TestGlob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(rapid.RuneFrom([]rune("ab.ä*?")), 0, 8, -1).Draw(t, "pattern")
		name := rapid.StringOfN(rapid.RuneFrom([]rune("ab.ä*")), 0, 8, -1).Draw(t, "name")
		text := regexp.QuoteMeta(pattern)
		text = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(text)
		if want := regexp.MustCompile("^(?s:" + text + ")$").MatchString(name); glob(pattern, name) != want {
			t.Fatalf("glob(%q, %q) is %v", pattern, name, !want)
		}
	})
}

// TestExpression: RabbitMQ, to which each byte is a character, finds exactly one character of UTF-8 for a question mark.
func TestExpression(t *testing.T) {
	inRabbitMQ := func(name string) string {
		var characters []rune
		for _, b := range []byte(name) {
			characters = append(characters, rune(b))
		}
		return string(characters)
	}
	one := regexp.MustCompile("^" + Expression("a?b") + "$")
	for name, matches := range map[string]bool{"a.b": true, "aäb": true, "a€b": true, "a🐇b": true, "ab": false, "accb": false, "aääb": false, "aäcb": false} {
		require.Equal(t, matches, one.MatchString(inRabbitMQ(name)), name)
	}
}

// TestMeasured: statistics are asked for the queues that rules name, and for all where one rule is for all, or another queue's matter.
func TestMeasured(t *testing.T) {
	for _, one := range []struct {
		watch Watch
		want  string
	}{
		{Watch{{Pattern: "retry.*", Mode: Keep}, {Pattern: "?.delay", Mode: Delay}, {Pattern: "*", Mode: Off}}, `^(retry\..*|[^\x80-\xBF][\x80-\xBF]*\.delay)$`},
		{Watch{{Pattern: "a", Mode: Keep}, {Pattern: "b", VHost: "other", Mode: Retry}}, "^(a)$"},
		{Watch{{Pattern: "a", Mode: Keep}, {Pattern: "*", Mode: Observe}}, ""},
		{Watch{{Pattern: "a", Mode: Keep}, {Pattern: "retry.delay", Mode: Retry}}, ""},
		{Watch{{Pattern: strings.Repeat("a", mostMeasured), Mode: Keep}}, ""},
	} {
		require.Equal(t, one.want, one.watch.Measured("/"))
	}
}
