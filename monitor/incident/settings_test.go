package incident

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

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
    count: 10
    lateness: 5s
`

func TestRulesAreRead(t *testing.T) {
	json := `{"rules": [{"name": "delays", "events": ["deadline_missed"], "queue": "nsb.delay-*", "to": []},
		{"vhost": "sho?", "queue": "orders", "severity": "critical", "to": "webhook", "count": 10, "lateness": "5s"}]}`
	for _, text := range []string{someRules, json} {
		o := Options{File: writeFile(t, text), URLs: []string{"webhook+https://hooks.example/x"}}
		s, err := o.readSettings()
		require.NoError(t, err)
		rules := s.rules
		require.Len(t, rules, 3, "the last is for what no other matches")
		require.Equal(t, "delays", rules[0].Name)
		require.Equal(t, []string{"deadline_missed"}, rules[0].Events)
		require.EqualValues(t, 1, rules[0].Count, "what it does not say")
		require.False(t, rules[0].sends("webhook"))
		require.True(t, rules[0].matches(about("deadline_missed", "/", "nsb.delay-level-07")))
		require.False(t, rules[0].matches(about("deadline_missed", "/", "nsbxdelay-level-07")), "a dot is a dot")
		require.False(t, rules[0].matches(about("held_past_deadline", "/", "nsb.delay-1")))
		r := rules[1]
		require.Equal(t, "rule-2", r.Name)
		require.True(t, r.sends("webhook"))
		require.Equal(t, "critical", r.Severity)
		require.Equal(t, []any{int64(10), 5 * time.Second}, []any{r.Count, r.lateness})
		require.True(t, r.matches(about("deadline_missed", "shop", "orders")))
		require.False(t, r.matches(about("deadline_missed", "shops", "orders")))
	}
}

func TestRulesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"rules: 5":                           ":1: want a list",
		"- a":                                ":1: want a mapping with the fields externalURL, runbooksURL",
		"rulez: []":                          ":1: unknown field \"rulez\": want one of externalURL, runbooksURL, deadManSwitch, sinks, rules",
		"rules:\n  - queues: a":              ":2: unknown field \"queues\": want one of name, events, vhost, queue",
		"rules:\n  - queue: a\n    queue: b": "already defined",
		"rules:\n  - events: [late]":         `:2: rules[0].events: unknown event "late": want one of part_stuck, data_folder_new`,
		"rules:\n  - events: [test]":         "unknown event",
		"rules:\n  - severity: fatal":        `:2: rules[0].severity: "fatal" is invalid: want critical or error or warning or info`,
		"rules:\n  - to: [mail]":             `:2: rules[0].to: unknown sink "mail": want one of log`,
		"sinks: {a: {url: 'webhook+https://x/'}}\nrules: [{to: [b]}]": `:2: rules[0].to: unknown sink "b": want one of log, a`,
		"sinks: [a]":          ":1: want a mapping from the name of each sink to its url",
		"sinks:\n  a: x":      ":2: want a mapping with the fields url, urlFile, secret, secretFile",
		"sinks:\n  a: {u: x}": ":2: unknown field \"u\": want one of url, urlFile, secret, secretFile",
		"sinks:\n  a: {}":     ":2: sinks.a: url is missing",
		"sinks:\n  log: {url: 'webhook+https://x/'}":                 "and not log, which always exists",
		"sinks:\n  a b: {url: 'webhook+https://x/'}":                 "want a name of letters",
		"sinks:\n  a: {url: 'https://x/token'}":                      ":2: sinks.a: url: say what https:// is: webhook+https:// for",
		"sinks:\n  a: {url: 'nowhere://token'}":                      `:2: sinks.a: url: unknown kind of sink "nowhere": want one of webhook, alertmanager, amqp, bark, discord`,
		"sinks:\n  a: {url: 'slack://token'}":                        ":2: sinks.a: url: slack: ",
		"sinks:\n  a: {url: 'amqp://broker/x'}":                      "want amqp:curfew.events",
		"sinks:\n  a: {url: 'ntfy://h/t', secret: x}":                "secret: only what goes to a webhook is signed",
		"sinks:\n  a: {url: 'ntfy://h/t', urlFile: x}":               ":2: sinks.a.urlFile: url is given as well; keep one",
		"sinks:\n  a: {urlFile: none}":                               "no such file",
		"deadManSwitch: {every: 1s}":                                 ":1: deadManSwitch: the field url, or the file that urlFile names, must hold an http:// or https:// URL",
		"deadManSwitch: {url: 'https://x/token', every: 1ms}":        "at least 1s",
		"externalURL: here":                                          ":1: externalURL: want an http:// or https:// URL",
		"rules:\n  - to: {a: b}":                                     "want a list",
		"rules:\n  - count: 0":                                       `"0" is invalid: want a number from 1`,
		"rules:\n  - queue: a\n    lateness: 5":                      `:3: rules[0].lateness: "5" is invalid: want a duration such as`,
		"rules:\n  - lateness: -1s":                                  "want a duration",
		"rules:\n  - name: a\n  - name: a":                           `:3: rules[1].name: "a" is the name of another rule, too`,
		"rules:\n  - queue:\n    to: []":                             ":2: queue is empty: give it a value, or leave it out",
		"rules:\n  - queue: ''\n    to: []":                          ":2: queue is empty",
		"rules:\n  - to: [~]":                                        ":2: an item is empty",
		"rules:\n  - <<: {queue: a}":                                 ":2: the key << is not read",
		"deadManSwitch: {url: 'https://x/y', every: 5}":              `:1: deadManSwitch.every: "5" is invalid: want a duration`,
		"rules:\n  - count: 1.9":                                     `:2: rules[0].count: "1.9" is invalid: want a number from 1`,
		"sinks:\n  a: {url: !!int token}":                            ":2: sinks.a: url: it has no scheme",
		"sinks:\n  a: |\n    to\n    token":                          ":2: want a mapping with the fields url",
		"sinks:\n  a: {url: 'ntfy://h/t'}\n  a: {url: 'ntfy://h/u'}": ":3: a is already defined",
		"rules: [": "yaml",
	} {
		path := writeFile(t, text)
		err := mistakeIn(t, path)
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "token")
	}
	require.ErrorIs(t, mistakeIn(t, filepath.Join(t.TempDir(), "none")), os.ErrNotExist)
	err := mistakeIn(t, writeFile(t, "rules:\n - severity: x\n - count: y"))
	require.ErrorContains(t, err, "severity")
	require.ErrorContains(t, err, "count", "every mistake is named")
}

func mistakeIn(t *testing.T, path string) error {
	t.Helper()
	a, err := New(Options{File: path})
	require.NoError(t, err)
	return a.FileError()
}

// TestRulesWithAMistakeAtTheStart: everything goes everywhere, health says so, and the
// corrected file is put in force.
// TestAValueOfTheWrongKindIsOneMistake: it is told once, and not again for what it would mean.
func TestAValueOfTheWrongKindIsOneMistake(t *testing.T) {
	for _, text := range []string{
		"rules:\n  - count: [1]", "rules:\n  - lateness: {a: 1}", "rules:\n  - events: [[a]]", "rules:\n  - to: {a: b}", "rules:\n  - severity: [a]",
		"deadManSwitch: {url: [a]}", "deadManSwitch: {urlFile: [a]}", "deadManSwitch: 5", "deadManSwitch: {url: 'https://x/y', every: [5]}", "externalURL: [a]",
		"sinks: {a: {url: [b]}}", "sinks: {a: {urlFile: [b]}}",
	} {
		o := Options{File: writeFile(t, text)}
		_, err := o.readSettings()
		require.ErrorContains(t, err, "want ", text)
		require.NotContains(t, err.Error(), "\n", text)
	}
}

func TestRulesWithAMistakeAtTheStart(t *testing.T) {
	path := settingsFile(t, "rules: [{queue: a, to: []}, {severity: fatal, count: 0}]")
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.File = path })
		require.Equal(t, 1, s.log.FilterMessageSnippet("the alerts file is not in force").Len())
		require.Contains(t, strings.Join(s.wrong(), " "), "every incident goes to every sink")
		require.Regexp(t, `:1: rules\[1\]\.severity: .*; .*:1: rules\[1\]\.count: `, strings.Join(s.wrong(), " "), "in one line")
		s.Record(missed("a", 1))
		pass(20 * time.Second)
		require.Equal(t, []string{"firing CurfewAlertRulesRefused", "firing CurfewDeadlineMissed a"}, s.told())

		replaceRules(t, path, "rules: [{queue: a, to: []}]")
		pass(15 * time.Second)
		require.NotContains(t, strings.Join(s.wrong(), " "), "not in force")
		s.Record(missed("a", 1))
		pass(20 * time.Minute)
		require.Equal(t, []string{"resolved CurfewAlertRulesRefused", "resolved CurfewDeadlineMissed a"}, s.told()[2:], "nobody is notified after that")
	})
}

// about is an incident of one queue.
func about(condition, vhost, queue string) *incident {
	return &incident{of: ConditionOf(condition), members: map[QueueName]Finding{{vhost, queue}: {}}}
}

// TestASinkWithAMistakeIsLeftOut, also where the decoder finds the mistake: it must not be used without the secret that was misspelled. The others are in
// force.
func TestASinkWithAMistakeIsLeftOut(t *testing.T) {
	for _, mistake := range []string{"secretfile: x", "secret: ''", "secret: [x]"} {
		o := Options{File: writeFile(t, "sinks:\n  bad:\n    url: webhook+https://x/\n    "+mistake+"\n  good: {url: 'webhook+https://x/'}\n")}
		s, err := o.readSettings()
		require.ErrorContains(t, err, ":4: ", mistake)
		require.Equal(t, []sinkSettings{{name: "good", url: "webhook+https://x/"}}, s.sinks, mistake)
	}
}

// TestASinkThatHasNoExchange: beside RabbitMQ, what else the file says is in force.
func TestASinkThatHasNoExchange(t *testing.T) {
	o := Options{File: writeFile(t, "deadManSwitch: {url: 'https://x/'}\nsinks: {a: {url: 'amqp:curfew.events'}}\nrules: [{events: [part_stuck], to: [log]}]\n")}
	s, err := o.readSettings()
	require.ErrorIs(t, err, errNoExchange)
	require.Len(t, s.rules, 2)
	require.Equal(t, "https://x/", s.deadManSwitch.url)
	require.Empty(t, s.sinks)
}

// TestRulesDecide: muted, held back by count and lateness, grouped and sent with the
// severity that the rules give.
func TestRulesDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.File = settingsFile(t, someRules) })
		s.Record(missed("nsb.delay-1", 5))
		order := missed("orders", 9)
		order.VHost, order.WorstMillis = "shop", 4_999
		s.Record(order)
		pass(10 * time.Second)
		require.Empty(t, s.receiver.got())
		require.Equal(t, 1, s.log.FilterField(zap.String("queue", "nsb.delay-1")).Len(), "the log is told")
		s.Record(order)
		pass(20 * time.Second)
		require.Empty(t, s.receiver.got(), "enough, but not late enough")
		order.WorstMillis, order.Count = 5_000, 1
		s.Record(order)
		pass(30 * time.Second)
		posts := s.receiver.got()
		require.Len(t, posts, 1)
		require.Equal(t, "critical", posts[0].CommonLabels["severity"])
		require.Equal(t, "orders", posts[0].GroupLabels["queue"])
		require.Equal(t, "19", posts[0].CommonAnnotations["count"])
	})
}

// replaceRules replaces the file at once. A file that is being written may be read half-way,
// and seem to have a mistake.
func replaceRules(t *testing.T, path, rules string) {
	t.Helper()
	require.NoError(t, os.Rename(settingsFile(t, rules), path))
}

// TestRulesAreReloaded: a changed file is put in force for what begins, and what began before ends
// where it was told; a file with mistakes changes nothing.
func TestRulesAreReloaded(t *testing.T) {
	path := settingsFile(t, "rules: []")
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.File = path })
		s.degraded("why")
		pass(20 * time.Second)
		require.Equal(t, []string{"firing CurfewScheduleDegraded"}, s.told())

		replaceRules(t, path, "rules: [{severity: fatal}]")
		pass(20 * time.Second)
		require.Equal(t, "firing CurfewAlertRulesRefused", s.told()[1])
		require.Contains(t, strings.Join(s.wrong(), " "), "severity")
		require.Equal(t, 1, s.log.FilterMessageSnippet("alerts file is not in force: correct").Len(), "it is logged once")

		replaceRules(t, path, "rules: [{events: [schedule_degraded], to: [], name: quiet}]")
		pass(15 * time.Second)
		require.NotContains(t, strings.Join(s.wrong(), " "), "not in force")
		s.degraded("")
		pass(5 * time.Second)
		require.Equal(t, []string{"resolved CurfewAlertRulesRefused", "resolved CurfewScheduleDegraded"}, s.told()[2:])
		s.degraded("again")
		pass(5 * time.Minute)
		require.Len(t, s.told(), 4)
	})
}

// TestRulesAreReloadedAtOnce: when that is asked for, and with an answer in the log though
// the file is the same.
func TestRulesAreReloadedAtOnce(t *testing.T) {
	path := settingsFile(t, "rules: []")
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.File = path })
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
}

// TestSinksAreReloaded: a file may bring sinks, change them and take them away while it is in force; what waits for one
// whose URL changes goes to the new one.
func TestSinksAreReloaded(t *testing.T) {
	secret := writeFile(t, "webhook+http://old.example/x\n")
	path := settingsFile(t, "sinks: {hook: {urlFile: "+secret+"}}")
	synctest.Test(t, func(t *testing.T) {
		hosts := make(chan string, 10)
		transport := http.DefaultTransport
		http.DefaultTransport = roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "old.example" {
				return nil, errors.New("no route")
			}
			hosts <- r.URL.Host
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
		})
		defer func() { http.DefaultTransport = transport }()
		s := run(t, func(o *Options) { o.File, o.URLs = path, nil })
		s.Record(missed("a", 1))
		pass(3 * time.Second)
		require.Empty(t, hosts)
		require.NoError(t, os.WriteFile(secret, []byte("webhook+http://new.example/x\n"), 0o600))
		pass(time.Minute)
		require.Equal(t, "new.example", <-hosts, "it waited for the old one")

		replaceRules(t, path, "sinks: {two: {url: 'webhook+http://two.example/x'}}")
		pass(15 * time.Second)
		require.Equal(t, []SinkStatus{{Name: "log"}, {Name: "two"}}, s.Sinks())
		for len(hosts) > 0 {
			<-hosts
		}
		s.degraded("why")
		pass(15 * time.Second)
		require.Equal(t, "two.example", <-hosts)
		require.Empty(t, hosts)
		replaceRules(t, path, "")
		pass(15 * time.Second)
		require.Equal(t, []SinkStatus{{Name: "log"}}, s.Sinks())
	})
}

// TestExampleFile: deploy/alerts.yaml is one that may be put in force.
func TestExampleFile(t *testing.T) {
	a, err := New(Options{File: "../../deploy/alerts.yaml", Publish: new(published).publish})
	require.NoError(t, err)
	require.NoError(t, a.FileError())
	require.Len(t, a.Rules().Rules, 3)
	require.Len(t, a.Sinks(), 9)
}
