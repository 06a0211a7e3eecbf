package dashboard

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/monitor"
	"curfew/monitor/alert"
	"curfew/monitor/audit"
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
			if path != "login" && path != "edit" { // these have the name in fields, which keep what they were given
				require.Contains(t, html.UnescapeString(page), visible(evil), "%s shows %q", path, evil)
			}
			for _, to := range leadsTo(page) {
				require.Regexp(t, `^(/$|/[^/\\]|#)`, to, "%s with %q", path, evil)
			}
			text := tagPattern.ReplaceAllString(areaPattern.ReplaceAllString(page, ""), "")
			require.NotContains(t, text, "\u202e")
			require.NotContains(t, text, "\x00")
		}
	}
}

// pagesOf are all pages of a site where everything has that name.
func pagesOf(t *testing.T, name string) map[string]string {
	t.Helper()
	s := newSite(t)
	s.audited(audit.Record{VHost: name, Queue: name, MessageID: []byte(name), Path: name, Outcome: name, To: []string{name, name}})
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
	s.letters.draft = Draft{Exchange: name, RoutingKey: name, Properties: name, Body: []byte("body")}
	s.letters.groups = []Group{{Reason: name, Queue: name, Exchange: name, Messages: 1}}
	s.letters.letters = []Letter{{Message: s.broker.messages[0], Deaths: []Death{{Queue: name, Reason: name, Exchange: name, Count: 2}}}}
	s.letters.replays = []Replay{{ID: name, VHost: name, Queue: name, User: name, State: "failed", Error: name, Left: []Pair{{name, name}}}}
	pages := map[string]string{"login": s.post("/login", url.Values{"name": {name}, "password": {"x"}, "to": {"/" + name}}).body}
	s.logIn(name)
	query, token := url.QueryEscape(name), s.d.sessions.tokenOf(s.secret())
	for short, path := range map[string]string{
		"overview": "/", "queues": "/queues?q=&vhost=" + query, "none": "/queues?sort=ready&q=no" + query, "queue": queueURL(name, name) + "&bodies=1&offset=0&x=" + query,
		"alerts": "/alerts?event=at_risk&vhost=" + query + "&queue=" + query, "dead letters": "/dead-letters",
		"dead letter": lettersURL(name, name) + "&bodies=1&reason=x&after=1&died_in=" + query + "&exchange=" + query + "&message_id=" + query + "&body=" + query,
		"deadline":    deadlineURL(name, name, 0), "edit": editURL(name, name, 0),
		"audit": "/audit", "nothing audited": "/audit?queue=no" + query + "&vhost=" + query + "&message_id=" + query,
	} {
		a := s.get(path)
		require.Equal(t, 200, a.status, path)
		pages[short] = a.body
	}
	order := url.Values{"token": {token}, "vhost": {name}, "name": {name}, "reason": {name}, "died_in": {name}, "exchange": {name}, "message_id": {name}, "body": {name}, "to": {name}, "ttl": {name}}
	pages["replay"] = s.post("/dead-letters/replay", order).body
	pages["purge"] = s.post("/dead-letters/purge", order).body
	order.Set("confirm", "9")
	pages["purge again"] = s.post("/dead-letters/purge", order).body
	change := url.Values{"token": {token}, "vhost": {name}, "name": {name}, "seq": {"0"}, "do": {"cancel"}}
	pages["deadline plan"] = s.post("/deadline", change).body
	pages["failed"] = s.get("/audit?min_lateness=" + query).body
	return pages
}

var linkPattern = regexp.MustCompile(` (?:href|src|action|data-live)="([^"]*)"`)

// leadsTo lists where a page's links and forms lead.
func leadsTo(page string) (list []string) {
	for _, m := range linkPattern.FindAllStringSubmatch(page, -1) {
		list = append(list, html.UnescapeString(m[1]))
	}
	return list
}

// TestLinksStayHere: no link leads elsewhere, whoever wrote what it is made of.
func TestLinksStayHere(t *testing.T) {
	for _, to := range []string{"javascript:alert(1)", " javascript:alert(1)", "//evil.example", `/\evil.example`, "https://evil.example", "data:text/html,x", "", "x", "/a\nb"} {
		require.Equal(t, ` href="/"`, fmt.Sprint(href(to)), "%q", to)
	}
	require.Equal(t, ` href="/queue?name=a&amp;vhost=%2F"`, fmt.Sprint(href(queueURL("/", "a"))))
	require.Equal(t, ` href="#content"`, fmt.Sprint(href("#content")))
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
