package dashboard

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	brokerpolicy "curfew/broker/policy"
	"curfew/cmd/internal/dashboard/internal/letters"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor"
	"curfew/monitor/audit"
	"curfew/monitor/incident"
)

// hostile are names as somebody would choose them who means ill.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'-alert(1)-'`, `javascript:alert(1)`, `</title><svg onload=alert(1)>`,
	`{{.Token}}`, `</pre><iframe srcdoc="x">`, `" onfocus="alert(1)" autofocus="`, `&lt;b&gt;`, "a\x00b\r\nSet-Cookie: x=1", "\u202egnp.exe", `../../login`,
	`<!--`, `]]>`, `x" style="position:fixed`,
}

// TestHostileNames: whatever is in a name, pages have the same tags with the same
// attributes as for a harmless one, and show it.
func TestHostileNames(t *testing.T) {
	plain := pagesOf(t, "plain")
	for _, evil := range hostile {
		for path, page := range pagesOf(t, evil) {
			if sortedByName.MatchString(path) {
				require.ElementsMatch(t, tagsOf(plain[path]), tagsOf(page), "%s with %q", path, evil)
			} else {
				require.Equal(t, tagsOf(plain[path]), tagsOf(page), "%s with %q", path, evil)
			}
			if path != "login" && path != "edit" && !strings.HasPrefix(path, "form: ") { // these have the name in fields, which keep what they were given
				require.Contains(t, html.UnescapeString(page), ui.Visible(evil), "%s shows %q", path, evil)
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
	_, _, err := s.b.PutVHost("", name, broker.VHostMetadata{})
	require.NoError(t, err)
	s.user(name, access.Administrator, name)
	vh, _ := s.b.VHost(name)
	q := s.queue(name, name, amqp.Table{"x-dead-letter-exchange": name, "x-dead-letter-routing-key": name})
	require.NoError(t, vh.Exchanges.Declare(name, broker.ExchangeDeclare{Kind: "fanout"}))
	require.NoError(t, vh.Bind(nil, broker.Binding{Source: name, Destination: name}))
	for _, k := range []brokerpolicy.Kind{brokerpolicy.User, brokerpolicy.Operator} {
		_, err = vh.Policies.Set(k, brokerpolicy.Policy{Name: name, Pattern: ".*", Definition: brokerpolicy.Definition{"max-length": int64(1000)}})
		require.NoError(t, err)
	}
	header := died(name, name, name)
	header[name] = name
	for range peekRows + 1 {
		s.publish(q, amqp.Properties{Headers: header, MessageID: name, ReplyTo: name, Has: amqp.HasHeaders | amqp.HasMessageID | amqp.HasReplyTo}, name)
	}
	s.monitor.health.Reasons = []string{name}
	s.monitor.forecasts = []deadline.Forecast{{VHost: name, Queue: name, Deadlines: 2, AtRisk: 1}}
	s.monitor.expiries = []monitor.RecentExpiry{{At: 1, VHost: name, Queue: name, Action: name, Path: name, Count: 1}}
	s.wrong = func(now *incident.State) {
		now.Parked = []incident.Depth{{QueueName: incident.QueueName{VHost: name, Name: name}, Count: 1}}
	}
	_, err = s.incidents.AddWindow(incident.Window{Condition: "deadline_missed", Queue: "x" + name, Author: name, Comment: name, Until: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	replay, err := json.Marshal(deadletters.Replay{
		ID: "r1", Request: deadletters.Request{VHost: name, Queue: name, User: name}, State: deadletters.Failed, Error: name, Skipped: map[deadletters.SkipReason]int{deadletters.SkipReason(name): 1},
	})
	require.NoError(t, err)
	s.kept("r1", string(replay))
	s.dataDir = name
	s.operates()
	s.permit("root", name, ".*", ".*")
	held := s.queue(name, name+"2", nil)
	for range 2 {
		s.publish(held, amqp.Properties{}, name)
	}
	s.dial(name, name, held.Name)
	pages := map[string]string{"login": s.post("/login", url.Values{"name": {name}, "password": {"x"}, "to": {"/" + name}}).body}
	s.logIn(name)
	query, token := url.QueryEscape(name), s.ownToken()
	for short, path := range map[string]string{
		"overview": "/", "queues": "/queues?q=&vhost=" + query, "none": "/queues?sort=ready&q=no" + query, "queue": ui.QueueURL(name, name) + "&bodies=1&offset=0&x=" + query,
		"incidents": "/incidents?condition=deadline_missed&vhost=" + query + "&queue=" + query, "dead letters": "/dead-letters",
		"dead letter": letters.URL(name, name, "") + "&order=oldest&after=1&filter=" + url.QueryEscape(string(deadletters.Equals("body", name).And(deadletters.Equals("queue", name)))),
		"deadlines":   ui.At("/deadlines", "vhost", name, "queue", name),
		"deadline":    ui.MessageURL("/deadline", name, name, 1), "edit": editURL(name, name, 1),
		"dead letter list": letters.URL(name, name, ""), "wrong filter": letters.URL(name, name, "") + "&filter=" + query, "runs": "/runs",
		"message":   "/dead-letters/message?seq=1&" + strings.TrimPrefix(letters.URL(name, name, ""), "/dead-letter?"),
		"exchanges": "/exchanges?q=" + query, "exchange": ui.At("/exchange", "vhost", name, "name", name),
		"delete exchange": ui.At("/exchange/delete", "vhost", name, "name", name), "delete queue": ui.At("/queue/delete", "vhost", name, "name", name),
		"purge queue": ui.At("/queue/purge", "vhost", name, "name", name), "get": ui.At("/queue/get", "vhost", name, "name", name),
		"form: queue": ui.At("/queue/new", "vhost", name, "name", name, "arguments", name), "form: exchange": ui.At("/exchange/new", "vhost", name, "name", name, "x-message-ttl", name),
		"form: binding": ui.At("/binding/new", "vhost", name, "source", name, "destination", name, "key", name), "form: publish": ui.At("/publish", "vhost", name, "exchange", name, "key", name, "body", name),
		"policies": "/policies", "form: policy": ui.At("/policy/new", "vhost", name, "name", name), "delete policy": ui.At("/policy/delete", "vhost", name, "name", name),
		"users": "/users", "user": ui.At("/user", "name", name, "vhost", name), "form: user": ui.At("/user/new", "name", name), "delete user": ui.At("/user/delete", "name", name),
		"clear permission": ui.At("/user/permission/clear", "name", name, "vhost", name), "vhosts": "/vhosts", "vhost": ui.At("/vhost", "name", name),
		"delete vhost": ui.At("/vhost/delete", "name", name), "form: vhost": ui.At("/vhost/new", "name", name, "description", name),
		"audit": "/audit", "nothing audited": "/audit?queue=no" + query + "&vhost=" + query + "&message_id=" + query,
	} {
		a := s.get(path)
		require.Equal(t, 200, a.status, path)
		pages[short] = a.body
	}
	for _, c := range s.server.List() {
		for short, path := range map[string]string{
			"connections": "/connections", "connection": ui.At("/connection", "name", c.Name), "close": ui.At("/connection/close", "name", c.Name),
			"consumers": "/consumers?q=" + query, "no connection": "/connections?q=no" + query, "held": ui.QueueURL(name, name+"2"),
		} {
			pages[short] = s.get(path).body
		}
	}
	order := url.Values{"token": {token}, "vhost": {name}, "name": {name}, "filter": {string(deadletters.Equals("message_id", name))}}
	pages["replay"] = s.post("/dead-letters/replay", order).body
	pages["purge"] = s.post("/dead-letters/purge", order).body
	order.Set("confirm", "9")
	pages["purge again"] = s.post("/dead-letters/purge", order).body
	change := url.Values{"token": {token}, "vhost": {name}, "name": {name}, "seq": {"1"}, "do": {"cancel"}}
	pages["deadline plan"] = s.post("/deadline", change).body
	sent := func(pairs ...string) url.Values {
		v := url.Values{"token": {token}, "vhost": {name}}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	pages["unbind"] = s.post("/binding/delete", sent("source", name, "destination", name, "to", "queue")).body
	pages["got"] = s.post("/queue/get", sent("name", name, "then", "requeue")).body
	pages["wrong number"] = s.post("/queue/purge", sent("name", name, "asked", "3", "confirm", name, "position", "1.1")).body
	pages["wrong queue"] = s.post("/queue/new", sent("name", name, "x-message-ttl", name, "x-max-length", name, "arguments", name)).body
	pages["wrong message"] = s.post("/publish", sent("expiration", name, "deadline", name, "headers", name, "priority", name)).body
	pages["tried policy"] = s.post("/policy/new", sent("name", name, "pattern", ".*", "apply-to", "queues", "priority", "1", "definition", `{"message-ttl": 60000}`)).body
	pages["wrong policy"] = s.post("/policy/new", sent("name", name, "pattern", "("+name, "apply-to", name, "priority", name, "definition", name)).body
	pages["failed"] = s.get("/audit?min_lateness=" + query).body
	return pages
}

// sortedByName are the pages with users or virtual hosts in the order of their names.
var sortedByName = regexp.MustCompile("^(user|vhosts|exchanges|wrong|form: |tried)")

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
		require.Equal(t, ` href="/"`, fmt.Sprint(ui.Href(to)), "%q", to)
	}
	require.Equal(t, ` href="/queue?name=a&amp;vhost=%2F"`, fmt.Sprint(ui.Href(ui.QueueURL("/", "a"))))
	require.Equal(t, ` href="#content"`, fmt.Sprint(ui.Href("#content")))
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
