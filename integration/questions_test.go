package integration

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"curfew/integration/testenv"
)

// question is what somebody wants to know who has never seen the dashboard: where to look, and what has to be seen there.
type question struct{ asks, path, sees string }

// TestQuestions: each page answers at first sight what people come to it with. The Curfew is one that `curfew demo --against` keeps busy.
func TestQuestions(t *testing.T) {
	t.Parallel()
	redis := testenv.StartRedis(t)
	c := startCurfew(t, "REDIS_URL="+redis.URL)
	b := openBrowser(t, c.http)
	b.do(chromedp.EmulateViewport(1200, 760))
	b.logIn()
	b.shows("No deadlines ahead")
	b.screenshot("empty-overview")
	fill := exec.CommandContext(t.Context(), mustBinary(t, release), "demo", "--against", c.http, "--for", "10m")
	fill.Env = environment(nil)
	check(t, fill.Start())
	t.Cleanup(func() {
		_ = fill.Process.Kill()
		_ = fill.Wait()
	})
	b.open("/consumers")
	b.until("document.querySelector('td .bad') !== null") // one holds messages past their deadlines
	b.open("/")
	eventually(t, startLimit, "dead letters of orders", func() bool {
		_, answer := c.request("guest", "guest", "GET", "/api/curfew/deadletters/demo", "")
		return strings.Contains(answer, "dead-letters") && !strings.Contains(answer, `"ready":0,`)
	})
	b.until("document.body.innerText.includes('Messages expire unconsumed') || document.body.innerText.includes('expired')")
	for _, q := range []question{
		{"Which queue will miss next?", "/", "orders"},
		{"What is broken now?", "/", "Broken now\n"},
		{"Which queue lost most in the last hour?", "/", "Lost most, last hour\n"},
		{"Which queue has the traffic?", "/", " in /s, "},
		{"Is Redis fine?", "/", "Redis, fires on time"},
		{"Did anything miss its deadline today?", "/", "expired"},
		{"How late are deadlines?", "/", "Lateness, p99"},
		{"Can publishers publish?", "/", "free to publish"},
		{"Who holds reports?", "/queue?vhost=demo&name=reports", "reports-worker"},
		{"Why will orders be late?", "/queue?vhost=demo&name=orders", "a second are consumed"},
		{"Which consumer is slow?", "/consumers", "reports-worker"},
		{"What do messages die of?", "/dead-letter?vhost=demo&name=dead-letters", "By cause"},
		{"What went wrong today?", "/incidents", "demo"},
	} {
		b.open(q.path)
		b.until("document.readyState === 'complete'")
		if text := evaluate[string](b, "document.body.innerText"); !strings.Contains(text, q.sees) {
			t.Errorf("%s: %s does not show %q:\n%s", q.asks, q.path, q.sees, text)
		}
	}
	b.bothSchemes("busy-overview", "/")
	b.bothSchemes("busy-queues", "/queues")
	b.bothSchemes("busy-queue", "/queue?vhost=demo&name=orders")
	b.bothSchemes("busy-consumers", "/consumers")
	b.bothSchemes("busy-dead-letters", "/dead-letter?vhost=demo&name=dead-letters")
	b.bothSchemes("busy-incidents", "/incidents")
	b.bothSchemes("busy-audit", "/audit")
	b.open("/dead-letter?vhost=demo&name=dead-letters")
	b.click("a.what")
	b.shows("Deaths")
	b.screenshot("busy-message")
	b.click("button[formaction='/dead-letters/replay']")
	b.shows("Where they go")
	b.screenshot("busy-replay")

	redis.Kill()
	b.open("/")
	b.shows("less protection than configured")
	b.shows("Redis is away")
	b.bothSchemes("degraded-overview", "/")
	b.quiet()
}

// bothSchemes keeps pictures of a page, light and dark, and tall ones that show what is further down, also on a phone.
func (b *browser) bothSchemes(name, path string) {
	b.Helper()
	b.do(chromedp.EmulateViewport(1200, 760))
	for _, dark := range []bool{false, true} {
		b.dark(dark)
		b.drawn(path)
		b.screenshot(name + map[bool]string{false: "", true: "-dark"}[dark])
	}
	b.dark(false)
	b.do(chromedp.EmulateViewport(1280, 1800))
	b.drawn(path)
	b.screenshot(name + "-tall")
	b.do(chromedp.EmulateViewport(390, 1800))
	b.drawn(path)
	b.screenshot(name + "-phone")
}

// drawn opens a page and waits for its charts.
func (b *browser) drawn(path string) {
	b.Helper()
	b.open(path)
	b.until("document.readyState === 'complete' && (document.querySelector('[data-history]') === null || document.querySelector('[data-history][data-drawn]') !== null)")
}
