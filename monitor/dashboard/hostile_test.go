package dashboard

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/monitor"
	"curfew/monitor/alert"
)

// hostile are names as somebody would choose them who means ill.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'-alert(1)-'`, `javascript:alert(1)`, `</title><svg onload=alert(1)>`,
	`{{.Token}}`, `</pre><iframe srcdoc="x">`, `" onfocus="alert(1)" autofocus="`, `&lt;b&gt;`, "a\x00b\r\nSet-Cookie: x=1", "\u202egnp.exe", `../../login`,
	`<!--`, `]]>`, "\xff\xfe", `x" style="position:fixed`,
}

// TestHostileNames: whatever is in a name, pages have the same tags with the same
// attributes as for a harmless one, and show it.
func TestHostileNames(t *testing.T) {
	plain := pagesOf(t, "plain")
	for _, evil := range hostile {
		for path, page := range pagesOf(t, evil) {
			require.Equal(t, tagsOf(plain[path]), tagsOf(page), "%s with %q", path, evil)
			require.Contains(t, html.UnescapeString(page), visible(evil), "%s shows %q", path, evil)
			require.NotContains(t, strings.ToLower(page), `href="javascript:`)
			text := tagPattern.ReplaceAllString(page, "") // a field to fill in keeps what it was given
			require.NotContains(t, text, "\u202e")
			require.NotContains(t, text, "\x00")
		}
	}
}

// pagesOf are all pages of a site where everything has that name.
func pagesOf(t *testing.T, name string) map[string]string {
	t.Helper()
	s := newSite(t)
	s.broker.setUser(name, User{Name: name, Admin: true, Stamp: "1"})
	s.broker.queues = []QueueDetail{{
		Queue: Queue{VHost: name, Name: name, Type: name, DeadLetterTo: name}, Features: []string{name}, Policy: name, OperatorPolicy: name,
		Arguments: []Pair{{name, name}}, Effective: []Pair{{name, name}}, ActiveConsumer: name,
	}}
	s.broker.messages = []Message{{Exchange: name, RoutingKey: name, Properties: []Pair{{name, name}}, Headers: []Pair{{name, name}}, Body: []byte(name)}}
	s.broker.state.DataDir, s.broker.state.Blocked = name, name
	s.monitor.health.Reasons = []string{name}
	s.monitor.forecasts = []monitor.Forecast{{VHost: name, Queue: name, Deadlines: 2, WillMiss: 1}}
	s.monitor.missed = []monitor.Miss{{At: 1, VHost: name, Queue: name, Action: name, Path: name, Count: 1}}
	s.alerts.AtRisk(alert.Risk{VHost: name, Queue: name, Count: 1, Reason: name})
	text := strings.ToValidUTF8(name, "?") // others are refused
	_, err := s.alerts.Mute(alert.Muting{Event: "at_risk", Queue: "x" + text, Author: text, Comment: text, ExpiresAt: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	s.letters.holders = []Holder{{VHost: name, Queue: name, From: []string{name}}}
	s.letters.groups = []Group{{Reason: name, Queue: name, Exchange: name, Messages: 1}}
	s.letters.letters = []Letter{{Message: s.broker.messages[0], Deaths: []Death{{Queue: name, Reason: name, Exchange: name, Count: 2}}}}
	s.letters.replays = []Replay{{ID: name, VHost: name, Queue: name, User: name, State: "failed", Error: name, Left: []Pair{{name, name}}}}
	s.logIn(name)
	pages := map[string]string{}
	for short, path := range map[string]string{"overview": "/", "queues": "/queues", "queue": queueURL(name, name) + "&bodies=1", "alerts": "/alerts",
		"dead letters": "/dead-letters", "dead letter": lettersURL(name, name) + "&bodies=1&reason=x&body=" + url.QueryEscape(name)} {
		a := s.get(path)
		require.Equal(t, 200, a.status, path)
		pages[short] = a.body
	}
	return pages
}

var (
	tagPattern   = regexp.MustCompile(`<[^>]*>`)
	valuePattern = regexp.MustCompile(`"[^"]*"`)
)

// tagsOf lists the tags of a page with the names of their attributes.
func tagsOf(page string) (tags []string) {
	for _, tag := range tagPattern.FindAllString(page, -1) {
		tags = append(tags, valuePattern.ReplaceAllString(tag, ""))
	}
	return tags
}

func TestVisible(t *testing.T) {
	require.Equal(t, "(empty)", visible(""))
	require.Equal(t, `a\u{202e}b`, visible("a\u202eb"))
	require.Equal(t, `a\u{0}\u{a}`, visible("a\x00\n"))
	require.Equal(t, `\xff`, visible("\xff"))
	require.Equal(t, "naïve 订单 b", visible("naïve 订单 b"))
	require.Less(t, len(visible(strings.Repeat("ä", 10_000))), 1100)
}

func TestBodyText(t *testing.T) {
	for _, c := range []struct {
		body, want  string
		cut, dumped bool
	}{
		{"plain\ttext\n", "plain\ttext\n", false, false},
		{"", "", false, false},
		{"caf\xc3", "caf", true, false},
		{"caf\xc3", "63 61 66 c3", false, true},
		{"a\x00b", "61 00 62", false, true},
		{"a\u202eb", "61 e2 80 ae 62", false, true},
	} {
		text, dumped := bodyText([]byte(c.body), c.cut)
		require.Equal(t, c.dumped, dumped, "%q", c.body)
		require.Contains(t, text, c.want)
	}
}
