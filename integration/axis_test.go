package integration

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

// mark is one of the history's.
type mark struct {
	At   int64
	Kind string
	Text string
	Page string
}

// marks are those of the last hour.
func (c *curfew) marks(t *testing.T) []mark {
	t.Helper()
	var past struct{ Marks []mark }
	check(t, json.Unmarshal([]byte(c.done(t, http.MethodGet, "curfew/history", "")), &past))
	return past.Marks
}

// marked waits for a mark with that kind and a text that contains part, and returns those that it finds.
func (c *curfew) marked(t *testing.T, kind, part string) (found []mark) {
	t.Helper()
	eventually(t, answerLimit, "a mark "+kind+" "+part, func() bool {
		found = slices.DeleteFunc(c.marks(t), func(m mark) bool { return m.Kind != kind || !strings.Contains(m.Text, part) })
		return len(found) > 0
	})
	return found
}

// orders is version by version of an application that consumes a queue.
func (c *curfew) orders(t *testing.T, version string) *amqp091.Connection {
	t.Helper()
	connection, err := amqp091.DialConfig(c.url, amqp091.Config{Properties: amqp091.Table{"connection_name": "orders " + version}})
	check(t, err)
	t.Cleanup(func() { connection.Close() })
	ch := openChannel(t, connection)
	_, err = ch.QueueDeclare("orders", true, false, false, false, amqp091.Table{"x-dead-letter-exchange": "away"})
	check(t, err)
	_, err = ch.Consume("orders", "", true, false, false, false, nil)
	check(t, err)
	return connection
}

// TestWhatChanged: everything that changes is on the axis of the lateness, once, whatever the process does; the slider and the keyboard find it.
func TestWhatChanged(t *testing.T) {
	t.Parallel()
	settings := []string{"DATA_DIR=" + t.TempDir()}
	c := startCurfew(t, settings...)
	old := c.orders(t, "1.0")
	ch := openChannel(t, dial(t, c.url))
	publish := func(expiration string) {
		check(t, ch.PublishWithContext(t.Context(), "", "orders", false, false, amqp091.Publishing{Expiration: expiration, DeliveryMode: amqp091.Persistent}))
	}
	publish("60000")
	c.done(t, http.MethodPut, "policies/%2F/short", `{"pattern": "^short$", "definition": {"message-ttl": 1000}}`)
	set := c.marked(t, "policy", "policy set by guest: short (message-ttl 1000)")[0]
	if set.Page != "/policies" {
		t.Errorf("the policy's page is %s", set.Page)
	}
	eventually(t, answerLimit, "the consumer to have been there for a while", func() bool { return time.Since(time.UnixMilli(set.At)) > 25*time.Second })
	check(t, old.Close())
	publish("1") // it is parked
	gone := c.marked(t, "consumers_gone", "orders has lost all its consumers (1)")[0]
	if gone.Page != "/queue?name=orders&vhost=%2F" {
		t.Errorf("the page is %s", gone.Page)
	}
	begun := c.marked(t, "alert", "Dead letters are parked")[0]
	c.orders(t, "1.1")
	c.marked(t, "consumers_back", "orders has consumers again (1)")
	deployed := c.marked(t, "deploy", "orders connects in version 1.1, before it in 1.0")[0]
	if deployed.Page != "/connections?q=orders" {
		t.Errorf("the page is %s", deployed.Page)
	}
	c.stop()

	c = startCurfew(t, settings...)
	eventually(t, answerLimit, "the incident to go on", func() bool { return strings.Contains(c.done(t, http.MethodGet, "curfew/incidents", ""), "arked") })
	c.orders(t, "1.2")
	c.marked(t, "deploy", "orders connects in version 1.2, before it in 1.1") // the state was watched again
	if starts := c.marked(t, "started", "started"); len(starts) != 2 {
		t.Errorf("%d starts: %v", len(starts), starts)
	}
	if again := c.marked(t, "alert", "Dead letters are parked"); len(again) != 1 || again[0] != begun {
		t.Errorf("the incident is marked as %v", again)
	}

	b := openBrowser(t, c.http)
	b.do(chromedp.EmulateViewport(1400, 1000))
	b.logIn()
	b.until("document.querySelectorAll('[data-plot=lateness] a.pin.deploy').length === 2")
	b.until("document.querySelector('[data-plot=lateness]').clientWidth > 1000")
	b.do(chromedp.Evaluate[chromedp.Void]("window.earlier = () => document.querySelector('.scrub button').click()"))
	b.do(chromedp.Focus(".scrub button"), chromedp.KeyEvent(kb.Enter))
	// From one change to the one before it.
	for _, text := range []string{"version 1.2", "Curfew ", "version 1.1"} {
		b.until("[...document.querySelectorAll('.scrub .marks a')].some(a => a.innerText.includes('" + text + "')) || (earlier(), false)")
	}
	b.until("/^\\d\\d:\\d\\d:\\d\\d UTC$/.test(document.querySelector('.scrub output').innerText)")
	b.do(chromedp.Focus("#scrub"), chromedp.KeyEvent(kb.End))
	b.until("document.querySelector('.scrub output').innerText === 'now'")
	b.do(chromedp.KeyEvent(kb.ArrowLeft))
	b.until("document.querySelector('.scrub output').innerText !== 'now'")
	// A link to an instant, without scripts too; a mark leads to its queue.
	b.withoutScripts()
	b.open("/?range=1h&at=" + strconv.FormatInt(gone.At/1000, 10))
	b.do(chromedp.Click(".scrub .marks a[href^='/queue?']"), chromedp.WaitVisible("[aria-labelledby=holders]"))
	b.quiet()
}
