package alert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

func writeRules(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const someRules = `
rules:
  - name: delays   # these queues are meant to expire
    events: [deadline_missed]
    queue: "nsb.delay-*"
    to: []
  - vhost: sho?
    queue: orders
    severity: critical
    to: webhook
    group: queue
    count: 10
    lateness: 5s
    wait: 2s
    interval: 30s
    repeat: 1h
`

func TestRulesAreRead(t *testing.T) {
	json := `{"rules": [{"name": "delays", "events": ["deadline_missed"], "queue": "nsb.delay-*", "to": []},
		{"vhost": "sho?", "queue": "orders", "severity": "critical", "to": "webhook", "group": "queue", "count": 10,
		 "lateness": "5s", "wait": "2s", "interval": "30s", "repeat": "1h"}]}`
	for _, text := range []string{someRules, json} {
		rules, _, err := readRules(writeRules(t, text), rule{wait: time.Second, interval: time.Minute, count: 1}, []string{"log", "webhook"})
		require.NoError(t, err)
		require.Len(t, rules, 2)
		require.Equal(t, "delays", rules[0].name)
		require.Equal(t, []Kind{DeadlineMissed}, rules[0].kinds)
		require.Equal(t, time.Second, rules[0].wait, "what it does not say")
		require.False(t, rules[0].sends("webhook"))
		require.True(t, rules[0].matches(key{kind: DeadlineMissed, vhost: "/", queue: "nsb.delay-level-07"}))
		require.False(t, rules[0].matches(key{kind: DeadlineMissed, vhost: "/", queue: "nsbxdelay-level-07"}), "a dot is a dot")
		require.False(t, rules[0].matches(key{kind: AtRisk, vhost: "/", queue: "nsb.delay-1"}))
		r := rules[1]
		require.Equal(t, "rule-2", r.name)
		require.True(t, r.sends("webhook"))
		require.Equal(t, "critical", r.severityOf(AtRisk))
		require.Equal(t, []any{byQueue, int64(10), 5 * time.Second, 2 * time.Second, 30 * time.Second, time.Hour},
			[]any{r.group, r.count, r.lateness, r.wait, r.interval, r.repeat})
		require.True(t, r.matches(key{vhost: "shop", queue: "orders"}))
		require.False(t, r.matches(key{vhost: "shops", queue: "orders"}))
	}
}

func TestRulesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "nothing is in it",
		"rules: 5":                           ":1: rules: it takes a list of rules",
		"- a":                                ":1: it takes a mapping with the fields rules",
		"rulez: []":                          ":1: rulez: there is no such field; there are rules",
		"rules:\n  - queues: a":              ":2: rules[0].queues: there is no such field; there are name, events, vhost, queue",
		"rules:\n  - queue: a\n    queue: b": "twice",
		"rules:\n  - events: [late]":         `:2: rules[0].events: there is no event "late"; it takes deadline_missed, at_risk, held_past_deadline, deadline_fired_late, dead_letter_unroutable, schedule_degraded, instance_silent`,
		"rules:\n  - events: [test]":         "there is no event",
		"rules:\n  - severity: fatal":        `:2: rules[0].severity: "fatal" is not allowed; it takes critical or error or warning or info`,
		"rules:\n  - group: [queue]":         "it takes event or vhost or queue or none",
		"rules:\n  - to: [mail]":             `there is no sink "mail"; it takes log, webhook`,
		"rules:\n  - to: [slack]":            "the sink slack is not configured; set CURFEW_ALERT_SLACK_URL",
		"rules:\n  - to: {a: b}":             "it takes a list",
		"rules:\n  - count: 0":               `"0" is not allowed; it takes a number from 1`,
		"rules:\n  - queue: a\n    wait: 5":  `:3: rules[0].wait: "5" is not allowed; it takes a duration such as`,
		"rules:\n  - lateness: -1s":          "it takes a duration",
		"rules:\n  - interval: 1ms":          "1s at least",
		"rules:\n  - name: a\n  - name: a":   `:3: rules[1].name: "a" is the name of the rule in line 2, too`,
		"rules:\n  - name:":                  "it takes text",
		"rules: [":                           "yaml",
	} {
		path := writeRules(t, text)
		err := mistakeIn(t, path)
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, path)
	}
	require.ErrorIs(t, mistakeIn(t, filepath.Join(t.TempDir(), "none")), os.ErrNotExist)
	err := mistakeIn(t, writeRules(t, "rules:\n - severity: x\n - count: y"))
	require.ErrorContains(t, err, "severity")
	require.ErrorContains(t, err, "count", "every mistake is named")
}

func mistakeIn(t *testing.T, path string) error {
	t.Helper()
	a, err := New(Options{RulesFile: path})
	require.NoError(t, err)
	return a.RulesError()
}

// TestRulesWithAMistakeAtTheStart: everything is told everywhere, that is said, and the
// corrected file is put in force.
func TestRulesWithAMistakeAtTheStart(t *testing.T) {
	path := writeRules(t, "rules: [{queue: a, to: []}, {severity: fatal, count: 0}]")
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.RulesFile = path })
		require.Equal(t, 1, s.log.FilterMessageSnippet("every event goes to every sink").Len())
		require.Contains(t, strings.Join(s.Health(), " "), "every event goes to every sink")
		require.Regexp(t, `:1: rules\[1\]\.severity: .*; .*:1: rules\[1\]\.count: `, strings.Join(s.Health(), " "), "in one line")
		require.Zero(t, inForce(t, s.registry))
		s.Record(missed("a", 1))
		time.Sleep(20 * time.Second)
		require.Len(t, s.receiver.got(), 1)

		replaceRules(t, path, "rules: [{queue: a, to: []}]")
		time.Sleep(15 * time.Second)
		require.Empty(t, s.Health())
		require.Equal(t, 1., inForce(t, s.registry))
		s.Record(missed("a", 1))
		time.Sleep(20 * time.Minute)
		require.Equal(t, "resolved", s.receiver.got()[1].Status)
		require.Len(t, s.receiver.got(), 2, "nobody is to be told any more")
	})
}

// inForce is the metric of that name.
func inForce(t *testing.T, registry prometheus.Gatherer) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "curfew_alert_rules_in_force" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("there is no such metric")
	return 0
}

// TestRulesDecide: muted, gated by count and lateness, grouped and told with the
// severity the rules say.
func TestRulesDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.RulesFile = writeRules(t, someRules) })
		s.Record(missed("nsb.delay-1", 5))
		order := missed("orders", 9)
		order.VHost, order.WorstMillis = "shop", 4_999
		s.Record(order)
		time.Sleep(10 * time.Second)
		require.Empty(t, s.receiver.got())
		require.Equal(t, 1, s.log.FilterField(zap.String("queue", "nsb.delay-1")).Len(), "the log is told")
		s.Record(order)
		time.Sleep(20 * time.Second)
		require.Empty(t, s.receiver.got(), "enough, but not late enough")
		order.WorstMillis, order.Count = 5_000, 1
		s.Record(order)
		time.Sleep(30 * time.Second)
		posts := s.receiver.got()
		require.Len(t, posts, 1)
		require.Equal(t, "critical", posts[0].CommonLabels["severity"])
		require.Equal(t, "orders", posts[0].GroupLabels["queue"])
		require.Equal(t, "19", posts[0].CommonAnnotations["count"])
	})
}

// replaceRules puts a file in the place of another at once: one that is being written
// may be read half-way, and a mistake is found in it.
func replaceRules(t *testing.T, path, rules string) {
	t.Helper()
	require.NoError(t, os.Rename(writeRules(t, rules), path))
}

// TestRulesAreReloaded: a changed file is put in force, and what it does not tell any
// more is over; one with mistakes changes nothing.
func TestRulesAreReloaded(t *testing.T) {
	path := writeRules(t, "rules: []")
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.RulesFile = path })
		s.Degraded("why")
		s.Record(missed("a", 1))
		time.Sleep(20 * time.Second)
		require.Len(t, s.receiver.got(), 2)

		replaceRules(t, path, "rules: [{severity: fatal}]")
		time.Sleep(20 * time.Second)
		require.Len(t, s.receiver.got(), 2)
		require.Contains(t, strings.Join(s.Health(), " "), "severity")
		require.Equal(t, 1, s.log.FilterMessageSnippet("not in force").Len(), "it is logged once")

		replaceRules(t, path, "rules: [{events: [schedule_degraded], to: [], name: quiet}]")
		time.Sleep(15 * time.Second)
		require.Empty(t, s.Health())
		posts := s.receiver.got()
		require.Len(t, posts, 3)
		require.Equal(t, "resolved CurfewScheduleDegraded", posts[2].Status+" "+posts[2].GroupLabels["alertname"])
		s.Restored()
		time.Sleep(5 * time.Minute)
		posts = s.receiver.got()
		require.Len(t, posts, 4, "what stays as it was goes on as it was")
		require.Equal(t, "resolved CurfewDeadlineMissed", posts[3].Status+" "+posts[3].GroupLabels["alertname"])
	})
}

// TestRulesAreReloadedAtOnce: when that is asked for, and with an answer in the log though
// the file is the same.
func TestRulesAreReloadedAtOnce(t *testing.T) {
	path := writeRules(t, "rules: []")
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.RulesFile = path })
		inForce := func() int { return s.log.FilterMessage("alert rules are in force").Len() }
		require.Equal(t, 1, inForce())
		s.Reload()
		synctest.Wait()
		require.Equal(t, 2, inForce())
		for told := range 2 {
			replaceRules(t, path, "rules: [{severity: fatal}]")
			s.Reload()
			synctest.Wait()
			require.Equal(t, told+1, s.log.FilterMessageSnippet("not in force").Len())
		}
	})
	(*Alerts)(nil).Reload()
}
