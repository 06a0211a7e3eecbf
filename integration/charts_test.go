package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

// fillCharts gives a Curfew a queue that nobody reads, one whose message a consumer holds past its deadline, and messages that expire.
func fillCharts(t *testing.T, c *curfew) {
	t.Helper()
	ch := openChannel(t, dial(t, c.url))
	for _, name := range []string{"nobody reads", "held"} {
		_, err := ch.QueueDeclare(name, true, false, false, false, nil)
		check(t, err)
	}
	deliveries, err := ch.Consume("held", "", false, false, false, false, nil)
	check(t, err)
	publish := func(queue string, ttl time.Duration, id string) {
		check(t, ch.PublishWithContext(t.Context(), "", queue, false, false, amqp091.Publishing{Expiration: fmt.Sprint(ttl.Milliseconds()), MessageId: id}))
	}
	publish("held", time.Second, "held-1")
	<-deliveries
	for i := range 20 {
		publish("nobody reads", 20*time.Minute, fmt.Sprint("far-", i))
	}
	for i := range 5 {
		publish("nobody reads", time.Millisecond, fmt.Sprint("gone-", i))
	}
}

// ink reports whether a chart has been drawn: something in its picture is in the colour of that name.
const ink = `(kind, name) => {
	const canvas = document.querySelector('[data-plot=' + kind + '] canvas');
	if (!canvas) return false;
	const copy = document.createElement('canvas');
	copy.width = canvas.width;
	copy.height = canvas.height;
	const probe = copy.getContext('2d', {willReadFrequently: true});
	const named = document.body.appendChild(document.createElement('span'));
	named.style.color = 'var(' + name + ')';
	probe.fillStyle = getComputedStyle(named).color;
	named.remove();
	probe.fillRect(0, 0, 1, 1);
	const want = probe.getImageData(0, 0, 1, 1).data;
	probe.clearRect(0, 0, 1, 1);
	probe.drawImage(canvas, 0, 0);
	const have = probe.getImageData(0, 0, copy.width, copy.height).data;
	for (let i = 0; i < have.length; i += 4) {
		if (have[i + 3] > 100 && Math.abs(have[i] - want[0]) + Math.abs(have[i + 1] - want[1]) + Math.abs(have[i + 2] - want[2]) < 24) return true;
	}
	return false;
}`

// TestChartsInABrowser: a bar of the deadlines ahead leads to these deadlines, and the history is drawn, listed, and goes on.
func TestChartsInABrowser(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	b := openBrowser(t, c.http)
	b.do(chromedp.EmulateViewport(1400, 1000))
	b.logIn()
	fillCharts(t, c)
	b.shows("20 at risk") // there is time left
	b.shows("1 held past their deadline")
	if got := evaluate[string](b, "[...document.querySelectorAll('.ticks span')].map(s => s.innerText).join()"); got != "now,+10 min,+20 min,+30 min" {
		t.Errorf("the ticks are %s", got)
	}
	b.until("document.querySelector('[data-history][data-drawn=\"3\"]') !== null")
	b.until("(" + ink + ")('depth', '--bar')")
	b.until("(" + ink + ")('traffic', '--warn')") // what expired
	b.screenshot("charts")

	// A click on the bar.
	const bar = "document.querySelector('.timeline a[href*=\"after=\"]')"
	if !evaluate[bool](b, bar+".querySelector('rect.risk') !== null") {
		t.Error("the bar is not in the colour of what is at risk")
	}
	b.do(chromedp.Evaluate[chromedp.Void](bar + ".dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))"))
	b.until("location.pathname === '/deadlines' && document.readyState === 'complete' && document.querySelector('h1').innerText.startsWith('20 deadlines from')")
	b.shows("far-19")
	b.shows("20 of 20 at risk")
	b.screenshot("deadlines")
	b.open("/")
	b.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('.lane-held a').dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))"))
	b.shows("held by a consumer")
	b.shows("held-1")

	// The time range is in the URL, and the table has the numbers.
	b.open("/")
	b.click("a[href*='range=1h']")
	b.until("location.search.includes('range=1h') && document.querySelector('nav[aria-label=\"Time range\"] b').innerText === '1 h'")
	b.until("document.querySelector('[data-history][data-drawn=\"3\"]') !== null")
	b.open("/?range=15m")
	b.click("[aria-labelledby=history] .as-table summary")
	b.until("[...document.querySelectorAll('[aria-labelledby=history] .as-table tbody tr')].some(tr => tr.cells[5].innerText === '5')") // expired
	b.shows("Curfew ")
	b.open("/queue?vhost=/&name=nobody+reads")
	b.until("document.querySelector('[data-history][data-drawn=\"3\"]') !== null")
	b.until("(" + ink + ")('depth', '--bad')") // all of them will expire; by itself, when the first ten seconds are over
	b.screenshot("queue-history")
	b.open("/queues")
	b.until("document.querySelector('svg.spark path') !== null")
	b.screenshot("sparklines")
	b.quiet()
	historyInTheAPI(t, c)
}

// historyInTheAPI asks for what the charts show.
func historyInTheAPI(t *testing.T, c *curfew) {
	t.Helper()
	ask := func(query, password string) (int, map[string]any) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.http+"/api/curfew/history?"+query, http.NoBody)
		check(t, err)
		r.SetBasicAuth("guest", password)
		resp, err := http.DefaultClient.Do(r)
		check(t, err)
		defer resp.Body.Close()
		var got map[string]any
		_ = json.NewDecoder(resp.Body).Decode(&got) // a refusal may be no JSON
		return resp.StatusCode, got
	}
	if code, _ := ask("", "wrong"); code != http.StatusUnauthorized {
		t.Errorf("a wrong password is answered with %d", code)
	}
	if code, _ := ask("queue=none", "guest"); code != http.StatusNotFound {
		t.Errorf("a queue that does not exist is answered with %d", code)
	}
	code, got := ask("span=15m&vhost=/&queue=nobody+reads", "guest")
	if code != http.StatusOK {
		t.Fatalf("%d: %v", code, got)
	}
	expired := 0.0
	for _, n := range got["expired"].([]any) {
		if n != nil {
			expired += n.(float64)
		}
	}
	if expired != 5 || !strings.HasPrefix(fmt.Sprint(got["step"]), "10") {
		t.Errorf("expired %v in steps of %v", expired, got["step"])
	}
}

// TestChartsWithoutScripts: the timeline is drawn and leads to the deadlines, and the history is a table.
func TestChartsWithoutScripts(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	fillCharts(t, c)
	b := openBrowser(t, c.http)
	b.logIn()
	b.shows("20 at risk")
	b.withoutScripts()
	b.open("/")
	b.do(chromedp.WaitVisible(".timeline a[href*=after] rect.risk"))
	b.do(chromedp.Click("[aria-labelledby=ahead] .as-table summary"))
	b.do(chromedp.Click("[aria-labelledby=ahead] .as-table tbody a"))
	b.do(chromedp.WaitVisible("a[href^='/deadline?']"))
	b.open("/")
	b.do(chromedp.WaitVisible("noscript p"))
	b.do(chromedp.Click("[aria-labelledby=history] .as-table summary"))
	b.do(chromedp.WaitVisible("[aria-labelledby=history] .as-table tbody tr"))
	b.quiet()
}
