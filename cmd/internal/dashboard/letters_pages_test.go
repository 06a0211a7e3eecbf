package dashboard

import (
	"bytes"
	"compress/gzip"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/monitor/audit"
)

// formWith has the hidden fields of the first form with a class or an action, as a browser sends them: lines end with CR LF.
func formWith(page, attribute string) url.Values {
	form := url.Values{}
	for _, m := range regexp.MustCompile(`(?s)<form [^>]*"`+attribute+`"[^>]*>.*?</form>`).FindAllString(page, 1) {
		for _, field := range hiddenFields(m) {
			text := strings.ReplaceAll(html.UnescapeString(field[1]), "\r\n", "\n")
			form.Add(field[0], strings.ReplaceAll(text, "\n", "\r\n"))
		}
	}
	return form
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// letter puts a dead letter of q into a queue.
func (s *site) letter(dlq *broker.Queue, p amqp.Properties, body string) {
	s.Helper()
	p.Headers = died("q", "expired", "")
	p.Has |= amqp.HasHeaders
	s.publish(dlq, p, body)
}

const dlqPage = "/dead-letter?vhost=/&name=dlq"

// TestRowsAndFilters: a row says what the message is; the filters of the address are those of the form, and a mistake is shown beside its field.
func TestRowsAndFilters(t *testing.T) {
	s := newSite(t).logIn("root")
	dlq := s.dead(0)
	s.letter(dlq, amqp.Properties{MessageID: "first-id", Type: "order.created"}, "{\n  \"customer\": {\"id\": 7, \"name\": \"Bj\\u00f6rn\"}\n}")
	s.letter(dlq, amqp.Properties{MessageID: "second-id", ContentEncoding: "gzip"}, gzipped(t, `{"customer": {"id": 8}, "secret": "packed"}`))
	page := s.get(dlqPage).body
	for _, text := range []string{"first-id", "order.created", "expired in q", `&#34;customer&#34;: {&#34;id&#34;: 7`, "&#34;packed&#34;"} {
		require.Contains(t, page, text)
	}
	require.Less(t, strings.Index(page, "second-id"), strings.Index(page, "first-id"), "the newest first")
	page = s.get(dlqPage + "&order=oldest").body
	require.Less(t, strings.Index(page, "first-id"), strings.Index(page, "second-id"))
	for filter, want := range map[string]string{
		`json.customer.id == 7`: "first-id", `json.customer.name == "Björn"`: "first-id", `body contains "Björn"`: "first-id", `type == "order.created"`: "first-id",
		`body contains "packed"`: "second-id", `body matches "id.: [8]"`: "second-id", `json.customer.id == 9`: "", `headers.x == "y"`: "", `died > ago("1s")`: "", `died > ago("1h")`: "both", `died < date("1970-01-01")`: "",
		`died < date("1970-01-02") && died >= date("1970-01-01")`: "both", `routing_key == "q"`: "both",
	} {
		page := s.get(dlqPage + "&filter=" + url.QueryEscape(filter)).body
		for _, id := range []string{"first-id", "second-id"} {
			require.Equal(t, want == "both" || want == id, strings.Contains(page, ">"+id), "%s: %s", filter, id)
		}
	}
	for filter, text := range map[string]string{
		`died > ago("yesterday")`: "such as ago(", `body matches "("`: "not an RE2 expression", `colour == "red"`: "character 1: there is no field", `reason == "boredom"`: "there is no reason",
	} {
		a := s.get(dlqPage + "&filter=" + url.QueryEscape(filter))
		require.Equal(t, http.StatusOK, a.status)
		require.Regexp(t, `class="wrong"[^>]*>[^<]*`+regexp.QuoteMeta(html.EscapeString(text)), a.body, filter)
		require.Contains(t, a.body, `name="filter" value="`+html.EscapeString(filter)+`"`, "the form stays as it was")
		require.NotContains(t, a.body, `name="pick"`)
	}
	page = s.get(dlqPage + "&filter=" + url.QueryEscape(`json != nil`)).body
	require.Contains(t, page, `<option value="`+html.EscapeString(`json != nil && reason == "expired"`)+`">`, "what is proposed narrows the filter")
	cause := regexp.MustCompile(`href="(/dead-letter\?filter=reason[^"]*)">expired`).FindStringSubmatch(s.get(dlqPage).body)
	require.NotNil(t, cause)
	require.Contains(t, s.get(html.UnescapeString(cause[1])).body, `name="filter" value="`+html.EscapeString(`reason == "expired" && queue == "q" && exchange == ""`)+`"`)
}

// TestSelected: rows that are selected are replayed, deleted and downloaded, and no other.
func TestSelected(t *testing.T) {
	s := newSite(t).logIn("root")
	dlq := s.dead(0)
	for _, id := range []string{"a", "b", "c", "d"} {
		s.letter(dlq, amqp.Properties{MessageID: id}, id)
	}
	page := s.get(dlqPage).body
	form := formWith(page, "letters")
	form.Set("of", "selected")
	a := s.post("/dead-letters/replay", form)
	require.Contains(t, a.body, "Select messages first")
	require.Contains(t, a.body, `name="pick"`, "the list is still there")
	require.Equal(t, 4, strings.Count(s.get(dlqPage+"&all=1").body, ` checked`))

	form["pick"] = []string{"2", "3"}
	a = s.post("/dead-letters/purge", form)
	require.Contains(t, a.body, "Delete 2 messages for good?")
	require.Contains(t, a.body, `class="danger"`)
	require.Contains(t, a.body, ">Cancel<")
	confirm := formWith(a.body, "/dead-letters/purge")
	confirm.Set("confirm", "2")
	require.Contains(t, s.post("/dead-letters/purge", confirm).body, "2 messages deleted.")
	require.Len(t, s.standing(dlq), 2)

	form["pick"] = []string{"4"}
	a = s.post("/dead-letters/replay", form)
	require.Contains(t, a.body, "Replay 1 message?")
	require.Contains(t, a.body, "q has no consumers")
	confirm = formWith(a.body, "doing")
	require.Equal(t, "/runs", s.post("/dead-letters/replay", confirm).path)
	q, _ := dlq.VHost().Queues.Get("q")
	require.Eventually(t, func() bool { return len(s.standing(q)) == 1 }, eventually, pollEvery)
	require.Equal(t, "d", string(s.standing(q)[0].Message.Body))

	_, err := dlq.VHost().Queues.Delete(nil, "dlq", broker.QueueDeletion{})
	require.NoError(t, err)
	s.dead(4)
	form["pick"] = []string{"1"}
	a = s.post("/dead-letters/purge", form)
	require.Equal(t, http.StatusNotFound, a.status, "a number means another message there")
}

// TestTrySaysWhere: the queues, who consumes, and what expires again; an option that is wrong keeps the form.
func TestTrySaysWhere(t *testing.T) {
	s := newSite(t).logIn("root")
	s.queue("/", "short", amqp.Table{"x-message-ttl": int64(20_000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
	s.dead(3)
	form := url.Values{"token": {s.token(dlqPage)}, "vhost": {"/"}, "name": {"dlq"}, "to": {"exchange"}, "exchange": {""}, "routing_key": {"short"}, "ttl": {"none"}}
	a := s.post("/dead-letters/replay", form)
	require.Contains(t, a.body, "short has no consumers: 3 messages would expire there again from 20 s on and come back here.")
	require.Contains(t, a.body, "3 in 20 s")
	confirm := formWith(a.body, "doing")
	require.Equal(t, "short", confirm.Get("routing_key"))
	for field, value := range map[string]string{"limit": "many", "rate": "-1", "ttl": "soon"} {
		wrong := url.Values{"ttl": {"none"}}
		for name, values := range form {
			wrong[name] = values
		}
		wrong.Set(field, value)
		a := s.post("/dead-letters/replay", wrong)
		require.Equal(t, http.StatusBadRequest, a.status)
		require.Contains(t, a.body, `class="wrong"`)
		require.Contains(t, a.body, `name="`+field+`" value="`+value+`"`)
	}
	form.Set("ttl", "5s")
	require.Contains(t, s.post("/dead-letters/replay", form).body, "3 in 5 s")
	require.Empty(t, s.started())
}

// TestSavedFilters are links that all who may read the queue share.
func TestSavedFilters(t *testing.T) {
	s := newSite(t).logIn("root")
	s.dead(2)
	night := dlqPage + "&filter=" + url.QueryEscape(`died > ago("2h")`)
	page := s.get(night).body
	form := formWith(page, "/dead-letters/filters")
	form.Set("as", "the <night>")
	a := s.post("/dead-letters/filters", form)
	require.Equal(t, "/dead-letter", a.path)
	require.Contains(t, a.body, "Saved as ")
	require.Contains(t, a.body, "Filter saved.")
	page = s.get(dlqPage).body
	require.Contains(t, page, `href="/dead-letter?filter=died+%3E+ago%28%222h%22%29&amp;name=dlq&amp;vhost=%2F">the &lt;night&gt;`)
	s.permit("eye", "/", ".*", "")
	s.logIn("eye")
	require.Contains(t, s.get(dlqPage).body, "the &lt;night&gt;")
	form = formWith(s.get(night).body, "/dead-letters/filters/delete")
	a = s.post("/dead-letters/filters/delete", form)
	require.NotContains(t, a.body, "night")
	require.Contains(t, a.body, "Filter deleted.")
	form.Set("as", strings.Repeat("x", 101))
	require.Equal(t, http.StatusBadRequest, s.post("/dead-letters/filters", form).status)
	s.permit("eye", "/", "", "")
	form.Set("as", "x")
	require.Equal(t, http.StatusForbidden, s.post("/dead-letters/filters", form).status)
}

// TestMessagePage: unpacked, JSON on many lines, bombs bounded, its deaths, and the whole body as a file.
func TestMessagePage(t *testing.T) {
	s := newSite(t).logIn("root")
	dlq := s.dead(0)
	bomb := gzipped(t, strings.Repeat("\n", 65<<20))
	for _, one := range []struct{ encoding, body string }{
		{"gzip", gzipped(t, `{"a":[1,{"b":"</pre><script>"}]}`)}, {"gzip", bomb}, {"gzip", "no gzip"}, {"", "\x00\x01"}, {"", strings.Repeat("long ", 60_000)}, {"", ""},
		{"", strings.Repeat("[", 300_000)}, {"", strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)},
	} {
		s.letter(dlq, amqp.Properties{ContentEncoding: one.encoding}, one.body)
	}
	page := func(query string) string {
		a := s.get("/dead-letters/message?vhost=/&name=dlq&seq=" + query)
		require.Equal(t, http.StatusOK, a.status, query)
		require.NotContains(t, a.body, "<script>\"")
		return a.body
	}
	body := page("1")
	require.Contains(t, body, "{\n  &#34;a&#34;: [\n    1,\n    {\n      &#34;b&#34;: &#34;&lt;/pre&gt;")
	require.Contains(t, body, "unpacked")
	require.Contains(t, body, "1970-01-01 00:13:20 UTC")
	require.Contains(t, body, ", 2 times since")
	require.Contains(t, body, `<p class="summary"><b>Expired</b> in <a href="/queue?name=q&amp;vhost=%2F">q</a> 2 times, for the first time at 1970-01-01 00:13:20 UTC.</p>`)
	require.Contains(t, page("1&raw=1"), `class="hex whole"`)
	require.Contains(t, page("2"), "This is the beginning")
	require.Contains(t, page("3"), "unpack gzip")
	require.Contains(t, page("4"), "00 01")
	require.Contains(t, page("5"), "This is the beginning")
	require.Contains(t, page("6"), "The message has no body.")
	require.Less(t, len(page("7")), 2<<20)
	require.Less(t, len(page("8")), 2<<20)
	for _, query := range []string{"9", "x", ""} {
		require.Equal(t, http.StatusNotFound, s.get("/dead-letters/message?vhost=/&name=dlq&seq="+query).status, query)
	}
	file := s.get("/dead-letters/body?vhost=/&name=dlq&seq=5")
	require.Len(t, file.body, 300_000)
	require.Equal(t, "application/octet-stream", file.header.Get("Content-Type"))
	require.Contains(t, file.header.Get("Content-Disposition"), `attachment; filename="message-5.bin"`)
	require.JSONEq(t, `{"a":[1,{"b":"</pre><script>"}]}`, s.get("/dead-letters/body?vhost=/&name=dlq&seq=1&unpacked=1").body)
	a := s.get("/dead-letters/body?vhost=/&name=dlq&seq=2&unpacked=1")
	require.Equal(t, http.StatusBadRequest, a.status)
	require.Contains(t, a.body, "more than 64 MiB")
	require.Len(t, s.get("/dead-letters/body?vhost=/&name=dlq&seq=2").body, len(bomb))
	require.Zero(t, s.b.Clients.Used())
	s.logIn("eye")
	require.Contains(t, page("1"), "may not read")
	require.Equal(t, http.StatusForbidden, s.get("/dead-letters/body?vhost=/&name=dlq&seq=1").status)
}

// TestReviewShowsWhatChanged: a difference, and where JSON was broken.
func TestReviewShowsWhatChanged(t *testing.T) {
	s := newSite(t).logIn("root")
	dlq := s.dead(0)
	header := died("q", "expired", "")
	header["tenant"], header["attempt"] = "globex", int32(2)
	s.publish(dlq, amqp.Properties{Headers: header, Has: amqp.HasHeaders}, `{"paid": false}`)
	page := s.get(editURL("/", "dlq", 1)).body
	require.Contains(t, page, "&#34;tenant&#34;: &#34;globex&#34;")
	require.Contains(t, page, "&#34;attempt&#34;: 2")
	form := filledIn(page)
	form.Set("body", `{"paid": true}`)
	review := s.post("/dead-letter/edit", form).body
	require.Contains(t, review, "<del>-  &#34;paid&#34;: false")
	require.Contains(t, review, "<ins>+  &#34;paid&#34;: true")
	require.NotContains(t, review, "valid JSON")
	require.NotContains(t, review, "-    &#34;attempt")
	form.Set("body", "{\n\"paid\": tru\n}")
	review = s.post("/dead-letter/edit", form).body
	require.Contains(t, review, "no longer valid JSON: line 2, column 12")
	require.Contains(t, review, "Replay although it is not JSON")
	again := formWith(review, "doing")
	again.Set("do", "again")
	require.Contains(t, s.post("/dead-letter/edit", again).body, "tru\n}")
	form.Set("properties", "{")
	a := s.post("/dead-letter/edit", form)
	require.Equal(t, http.StatusBadRequest, a.status)
	require.Contains(t, a.body, "properties cannot be read")
	require.Contains(t, a.body, "tru\n}", "the form is as it was filled in")
	form.Set("properties", strings.ReplaceAll(filledIn(page).Get("properties"), "globex", "initech"))
	form.Set("body", "{}")
	require.Contains(t, s.sent(form).body, "1 message replayed.")
	q, _ := dlq.VHost().Queues.Get("q")
	p, err := s.standing(q)[0].Decode()
	require.NoError(t, err)
	require.Equal(t, "initech", p.Headers["tenant"])
	require.Equal(t, int32(2), p.Headers["attempt"], "types stay")
}

// TestParkedSayWhy: what is missing, and how to go on.
func TestParkedSayWhy(t *testing.T) {
	s := newSite(t).logIn("root")
	q := s.queue("/", "orders", amqp.Table{"x-dead-letter-exchange": "gone"})
	for range 2 {
		s.publish(q, amqp.Properties{}, "x")
		require.Equal(t, deadline.Expired, s.b.FireNow(q.Messages.Ref(&s.standing(q)[0]), false))
	}
	vh, _ := s.b.VHost("/")
	parked := func() string { return s.get("/dead-letter?vhost=/&name=curfew.undeliverable").body }
	require.Eventually(t, func() bool { return strings.Contains(parked(), "exchange &#34;gone&#34; does not exist") }, eventually, pollEvery)
	s.queue("/", "letters", amqp.Table{"x-curfew-purpose": "dead-letters"}) // as the node says of the queue of those that are parked
	own := s.get("/queue?vhost=/&name=letters").body
	require.Contains(t, own, "dead letters wait here until they are replayed, moved or purged")
	require.NotContains(t, own, "set a policy")
	require.NoError(t, vh.Exchanges.Declare("gone", broker.ExchangeDeclare{Kind: "topic"}))
	require.Contains(t, parked(), "no queue is bound to exchange &#34;gone&#34; for key &#34;orders&#34;")
	s.queue("/", "orders.dead", nil)
	require.NoError(t, vh.Bind(nil, broker.Binding{Source: "gone", Destination: "orders.dead", RoutingKey: "#"}))
	page := parked()
	require.Contains(t, page, "leads to a queue now")
	var form url.Values
	for _, m := range regexp.MustCompile(`(?s)<form [^>]*action="/dead-letters/replay".*?</form>`).FindAllString(page, -1) {
		if strings.Contains(m, `value="onward"`) {
			form = hiddenForm(m)
		}
	}
	require.NotNil(t, form)
	a := s.post("/dead-letters/replay", form)
	require.Contains(t, a.body, "Replay 2 messages?")
	require.Contains(t, a.body, "orders.dead")
	require.Equal(t, "/runs", s.post("/dead-letters/replay", formWith(a.body, "doing")).path)
	dead, _ := vh.Queues.Get("orders.dead")
	require.Eventually(t, func() bool { return len(s.standing(dead)) == 2 }, eventually, pollEvery)
	p, err := s.standing(dead)[0].Decode()
	require.NoError(t, err)
	require.NotEmpty(t, p.Headers["x-death"], "it is a dead letter still")
}

// TestParkedForWantOfAQueue: by the default exchange, to which nothing can be bound.
func TestParkedForWantOfAQueue(t *testing.T) {
	s := newSite(t).logIn("root")
	q := s.queue("/", "orders", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dead"})
	s.publish(q, amqp.Properties{}, "x")
	require.Equal(t, deadline.Expired, s.b.FireNow(q.Messages.Ref(&s.standing(q)[0]), false))
	require.Eventually(t, func() bool {
		return strings.Contains(s.get("/dead-letter?vhost=/&name=curfew.undeliverable").body, "there is no queue &#34;orders.dead&#34;. Declare it, then")
	}, eventually, pollEvery)
}

// TestAuditLeadsToTheDeadLetter by its id, or by where and when it died.
func TestAuditLeadsToTheDeadLetter(t *testing.T) {
	s := newSite(t)
	s.audited(audit.Record{At: 800_500, VHost: "/", Queue: "q", MessageID: []byte("an-id"), Outcome: "dead_lettered", To: []string{"dlq"}},
		audit.Record{At: 800_500, VHost: "/", Queue: "q", Outcome: "dead_lettered", To: []string{"dlq"}})
	s.logIn("root")
	dlq := s.dead(0)
	s.letter(dlq, amqp.Properties{MessageID: "an-id"}, "with id")
	s.letter(dlq, amqp.Properties{}, "without id")
	links := regexp.MustCompile(`href="(/dead-letter\?[^"]*)"`).FindAllStringSubmatch(s.get("/audit?reason=").body, -1)
	require.Len(t, links, 2)
	for _, link := range links {
		page := s.get(html.UnescapeString(link[1])).body
		require.Contains(t, page, "with")
		require.NotContains(t, page, "No message matches")
	}
}

const (
	eventually = time.Minute
	pollEvery  = time.Millisecond
)

// TestQueuesWithDeadLetters: those that have any, or are to keep them. Where parked ones come from is said in words, and a long name breaks.
func TestQueuesWithDeadLetters(t *testing.T) {
	s := newSite(t).logIn("root")
	to := func(queue, purpose string) amqp.Table {
		return amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue, "x-curfew-purpose": purpose}
	}
	s.queue("/", "jobs", to("kept", "work"))
	s.queue("/", "jobs.wait", to("jobs", "retry"))
	s.queue("/", strings.Repeat("long", 40), to("kept", "work"))
	s.queue("/", "kept", amqp.Table{"x-curfew-purpose": "dead-letters"})
	s.publish(s.queue("/", "curfew.undeliverable", nil), amqp.Properties{Headers: died("typo", "expired", ""), Has: amqp.HasHeaders}, "abc")
	page := s.get("/dead-letters").body
	require.Contains(t, page, `name=kept`)
	require.Regexp(t, `<td[^>]*><span class="names">jobs, (long(<wbr>)?)+</span></td>`, page)
	require.NotContains(t, page, `name=jobs`, "0 messages")
	require.Regexp(t, `curfew\.(<wbr>)?undeliverable.*queues whose dead letters have nowhere to go`, page)
	require.NotContains(t, page, "leads here now")
}
