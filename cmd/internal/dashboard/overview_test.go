package dashboard

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/monitor"
	"curfew/monitor/history"
)

// TestLatenessOfASpan: each choice keeps the other, and the number at the top is that of the last hour.
func TestLatenessOfASpan(t *testing.T) {
	s := newSite(t).logIn("eye")
	s.monitor.lateness = monitor.Lateness{UpTo: []int64{1, 1000}, Counts: []uint64{0, 7, 0}}
	s.monitor.recently = monitor.Lateness{UpTo: []int64{1, 1000}, Counts: []uint64{3, 0, 0}}
	a := s.get("/?ahead=1+h")
	require.Contains(t, a.body, "7 messages</b> in ")
	require.Contains(t, a.body, `href="/?ahead=1+h&amp;late=5m"`)
	a = s.get("/?ahead=1+h&late=5m")
	require.Contains(t, a.body, "3 messages</b> in the last 5 min")
	require.Contains(t, a.body, `href="/?ahead=1+h&amp;late=1h"`)
	require.Contains(t, a.body, `href="/?ahead=1+h"`)
	require.Contains(t, a.body, `href="/?ahead=1+min&amp;late=5m"`)
	require.Contains(t, a.body, "<b>≤ 1 ms</b>", "at the top")
	s.monitor.recently = monitor.Lateness{UpTo: []int64{1}, Counts: []uint64{0, 0}}
	require.Contains(t, s.get("/?late=1h").body, "Nothing expired in the last 1 h.")
}

// TestDeadlinesOfManyQueues: the page lists those with the most, and says how many others there are.
func TestDeadlinesOfManyQueues(t *testing.T) {
	s := newSite(t).logIn("root")
	const queues = 203
	for i := range queues {
		s.publish(s.queue("/", fmt.Sprint("q", i), nil), amqp.Properties{Expiration: "60000", Has: amqp.HasExpiration}, "")
	}
	page := s.get("/deadlines").body
	require.Contains(t, page, "203 deadlines")
	require.Contains(t, page, "And 3 more queues.")
	require.Equal(t, 200, strings.Count(page, "Only these"))
	require.NotContains(t, s.get("/deadlines?vhost=/&queue=q1").body, "more queue")
}

// TestEmptyOverviewSaysHowToStart: where clients connect, and a command that fills it; once there is a queue, nothing of that.
func TestEmptyOverviewSaysHowToStart(t *testing.T) {
	s := newSite(t)
	s.with(func(o *Options) { o.AMQP = &net.TCPAddr{IP: net.IPv6unspecified, Port: 5672} })
	s.logIn("root")
	page := s.get("/").body
	require.Contains(t, page, "<code>amqp://127.0.0.1:5672</code>", "by the name that the browser has for it")
	require.Contains(t, page, "curfew demo --against "+s.url+"</code>")
	s.queue("/", "q", nil)
	require.NotContains(t, s.get("/").body, "curfew demo")
}

// TestWhatChangedAtAnInstant is on the page without scripts, with a link to what each change is about.
func TestWhatChangedAtAnInstant(t *testing.T) {
	s := newSite(t)
	past := history.New(history.Options{Version: "1.2"})
	past.AddNow(history.Mark{Kind: history.AlertFired, Text: "<late>", About: "abc"})
	past.AddNow(history.Mark{Kind: history.ConsumersGone, Text: "q has lost", VHost: "v", Queue: "q"})
	s.with(func(o *Options) { o.History = past })
	s.logIn("eye")
	at := time.Now().Unix()
	_, changed, _ := strings.Cut(s.get("/").body, "<h2>What changed</h2>")
	changed, rest, _ := strings.Cut(changed, "</section>")
	require.Contains(t, changed, `">q has lost</a>`)
	require.NotContains(t, changed, "&lt;late&gt;", "the incidents are above it")
	require.Contains(t, rest, "Deadlines ahead", "it is above the numbers")
	around := func(at int64) string {
		_, rest, _ := strings.Cut(s.get(fmt.Sprint("/?range=1h&at=", at)).body, `class="scrub wide"`)
		form, _, _ := strings.Cut(rest, "</form>")
		return form
	}
	then := around(at)
	require.Contains(t, then, " autofocus", "the page opens there")
	require.Contains(t, then, `<a href="/incidents#incident-abc">&lt;late&gt;</a>`)
	require.Contains(t, then, `<a href="/queue?name=q&amp;vhost=v">q has lost</a>`)
	require.Contains(t, then, `<input type="hidden" name="range" value="1h">`)
	before := around(at - 1800)
	require.Contains(t, before, "Curfew 1.2 started", "the first one after it")
	require.NotContains(t, before, "q has lost")
	require.NotContains(t, around(0), "started", "nobody asked")
	for _, never := range []int64{1<<63 - 1, 9223372036854776, -1} { // the second is one whose milliseconds are below every int64
		require.NotContains(t, around(never), "data-at", never)
		require.Equal(t, 200, s.get(fmt.Sprint("/?at=", never)).status)
	}
}
