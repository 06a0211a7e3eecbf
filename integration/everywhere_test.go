package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

// everyPage of a Curfew that fillEveryPage has filled, and what it shows to those who may see it. LETTER is the number of a dead letter, CONNECTION
// the name of a connection.
var everyPage = map[string]string{
	"/": "Deadlines ahead", "/deadlines": "By queue", "/queues": "orders.payment", "/queue?vhost=/&name=orders.payment&bodies=1": "Who holds it",
	"/queue?vhost=/&name=orders.payment&from=tail": "Settings", "/deadline?vhost=/&name=orders.payment&seq=1": "Another deadline",
	"/queue/new?vhost=/": "New queue", "/queue/delete?vhost=/&name=orders.payment": "Delete the queue", "/queue/purge?vhost=/&name=orders.payment": "for good?",
	"/queue/get?vhost=/&name=orders.payment": "Get a message", "/publish": "Publish a message",
	"/exchanges": "amq.direct", "/exchange?vhost=/&name=shop": "By the key", "/exchange/new": "New exchange", "/exchange/delete?vhost=/&name=shop": "Delete the exchange",
	"/scheduled": "Scheduled by you", "/scheduled/cancel?exchange=amq.default&message_id=later-1&vhost=/": "It is never delivered",
	"/scheduled/change?exchange=amq.default&message_id=later-1&vhost=/": "Reschedule the message",
	"/binding/new?vhost=/&source=shop":                                  "New binding", "/binding/delete?args=&destination=orders.payment&key=orders.*&source=shop&to=queue&vhost=/": "orders.*",
	"/connections": "everywhere", "/connection?name=CONNECTION": "Channels", "/connection/close?name=CONNECTION": "Close the connection", "/consumers": "worker",
	"/dead-letters": "orders.expired", "/dead-letter?vhost=/&name=orders.expired": "By cause", "/dead-letters/message?vhost=/&name=orders.expired&seq=LETTER": "Deaths",
	"/runs": "Nothing runs",
	"/dead-letter/edit?vhost=/&name=orders.expired&seq=LETTER": "Change a dead letter",
	"/incidents": "Where notifications go", "/audit": "set policy", "/audit?reason=": "dead-lettered",
	"/policies": "ttl", "/policy/new": "Definition", "/policy/delete?vhost=/&name=ttl": "Delete the policy",
	"/operator-policy/new": "Definition", "/operator-policy/delete?vhost=/&name=most": "Delete the policy",
	"/vhosts": "shop", "/vhost?name=shop": "Limits", "/vhost/new": "New virtual host", "/vhost/delete?name=shop": "Delete the virtual host",
	"/users": "guest", "/user/new": "New user", "/user?name=eye": "Topic permissions", "/user/delete?name=eye": "Delete the user",
	"/user/permission/clear?name=eye&vhost=/": "Clear the permissions of", "/user/topic/clear?name=eye&vhost=/&exchange=amq.topic": "Clear the topic permissions of",
}

// refusals are what pages say to those who may not see them.
var refusals = []string{"users with the tag", "may not read", "lacks the permission", "may not change", "may not replay", "no longer exists"}

// fillEveryPage gives each page something to show, and makes the users eye, who may read and monitors, and blind, who only monitors. It returns
// what stands for the names in everyPage.
func fillEveryPage(t *testing.T, c *curfew) *strings.Replacer {
	t.Helper()
	fillDashboard(t, c)
	connection, err := amqp091.DialConfig(c.url, amqp091.Config{Properties: amqp091.Table{"connection_name": "everywhere"}})
	check(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	ch := openChannel(t, connection)
	check(t, ch.ExchangeDeclare("shop", "topic", true, false, false, false, nil))
	check(t, ch.QueueBind("orders.payment", "orders.*", "shop", false, nil))
	check(t, ch.PublishWithContext(t.Context(), "", "orders.payment", false, false, amqp091.Publishing{MessageId: "later-1", Headers: amqp091.Table{"x-delay": int32(3_600_000)}}))
	const long = "orders.payment-service_eu-west.invoices/created:by-everybody"
	_, err = ch.QueueDeclare(long, true, false, false, false, amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.expired"})
	check(t, err)
	check(t, ch.QueueBind(long, long, "shop", false, nil))
	check(t, ch.PublishWithContext(t.Context(), "shop", long, false, false, amqp091.Publishing{MessageId: long, Expiration: "300"}))
	check(t, ch.Qos(3, 0, false))
	_, err = ch.QueueDeclare("held", true, false, false, false, nil)
	check(t, err)
	for range 3 {
		check(t, ch.PublishWithContext(t.Context(), "", "held", false, false, amqp091.Publishing{Expiration: "300"}))
	}
	held, err := ch.ConsumeWithContext(t.Context(), "held", "worker", false, false, false, false, nil)
	check(t, err)
	for range 3 {
		<-held
	}
	for path, body := range map[string]string{
		"policies/%2F/ttl": `{"pattern": "^orders", "definition": {"max-length": 100000}, "apply-to": "queues"}`, "operator-policies/%2F/most": `{"pattern": "^x", "definition": {"max-length": 9}}`,
		"vhosts/shop": `{"description": "what the shop needs"}`, "users/eye": `{"password": "eye", "tags": "monitoring"}`, "users/blind": `{"password": "blind", "tags": "monitoring"}`,
	} {
		c.done(t, http.MethodPut, path, body)
	}
	c.done(t, http.MethodPut, "permissions/%2F/eye", `{"configure": "", "write": "", "read": ".*"}`)
	c.done(t, http.MethodPut, "topic-permissions/%2F/eye", `{"exchange": "amq.topic", "write": "^a", "read": ".*"}`)
	c.done(t, http.MethodPut, "vhost-limits/shop/max-queues", `{"value": 20}`)
	var list []struct {
		Name string `json:"name"`
	}
	check(t, json.Unmarshal([]byte(c.done(t, http.MethodGet, "connections", "")), &list))
	var letters []struct {
		Seq uint64 `json:"seq"`
	}
	check(t, json.Unmarshal([]byte(c.done(t, http.MethodPost, "queues/%2F/orders.expired/peek", `{"count": 1}`)), &letters))
	return strings.NewReplacer("CONNECTION", url.QueryEscape(list[0].Name), "LETTER", fmt.Sprint(letters[0].Seq))
}

// layout is what is wrong with how a page stands: it is wider than the window, texts and controls stand upon each other, or a number can be seen only
// by scrolling to the side.
const layout = `(() => {
	const wrong = [], wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
	if (wide > 0) wrong.push(wide + ' px wider than the window');
	const tops = [...document.querySelectorAll('header > *, header nav > *')].map(e => e.getBoundingClientRect()).map(r => r.top + r.height / 2);
	if (innerWidth >= 1280 && Math.max(...tops) - Math.min(...tops) > 12) wrong.push('the header has more than one line');
	const shown = [];
	for (const e of document.body.querySelectorAll('*')) {
		if (e.closest('svg, canvas, .unseen, .skip, noscript, option, .u-wrap, .u-legend') || !e.checkVisibility({visibilityProperty: true})) continue;
		const boxes = [];
		if (/^(INPUT|SELECT|TEXTAREA|BUTTON|PROGRESS)$/.test(e.nodeName)) {
			boxes.push([e.getBoundingClientRect(), '']);
		} else {
			for (const n of e.childNodes) {
				if (n.nodeType !== Node.TEXT_NODE || n.data.trim() === '' || e.closest('button, select, textarea')) continue;
				const range = document.createRange();
				range.selectNodeContents(n);
				for (const box of range.getClientRects()) boxes.push([box, n.data.trim()]);
				if (e.closest('pre, .line, .hex')) continue;
				let block = e;
				while (getComputedStyle(block).display === 'inline') block = block.parentElement;
				const style = getComputedStyle(block), room = block.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
				for (const word of range.getClientRects().length > 1 ? n.data.matchAll(/\p{L}+/gu) : []) {
					range.setStart(n, word.index); range.setEnd(n, word.index + word[0].length);
					const parts = [...range.getClientRects()].filter(r => r.width > 0);
					if (new Set(parts.map(r => r.top)).size > 1 && parts.reduce((sum, r) => sum + r.width, 0) < room - 1) wrong.push(e.nodeName + ' "' + n.data.trim().slice(0, 60) + '" is broken within "' + word[0] + '"');
				}
			}
		}
		for (const [box, text] of boxes) {
			let {left, top, right, bottom} = box;
			for (let up = e; up !== document.body; up = up.parentElement) { // what is cut off or scrolled away is not seen
				if (getComputedStyle(up).overflow === 'visible') continue;
				const frame = up.getBoundingClientRect();
				left = Math.max(left, frame.left); right = Math.min(right, frame.right); top = Math.max(top, frame.top); bottom = Math.min(bottom, frame.bottom);
			}
			if (/\d/.test(text) && !e.closest('pre, .line, .user') && (left - box.left > 1 || box.right - Math.min(right, innerWidth) > 1)) {
				wrong.push(e.nodeName + ' "' + text.slice(0, 30) + '" is off the screen');
			}
			if (right - left > 1 && bottom - top > 1) shown.push({e, left, top, right, bottom});
		}
	}
	shown.sort((a, b) => a.top - b.top);
	for (let i = 0; i < shown.length; i++) {
		for (let j = i + 1; j < shown.length && shown[j].top < shown[i].bottom - 4; j++) {
			const a = shown[i], b = shown[j];
			if (a.e === b.e || a.e.contains(b.e) || b.e.contains(a.e)) continue;
			if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 4 && Math.min(a.bottom, b.bottom) - b.top > 4) {
				wrong.push([a, b].map(x => x.e.nodeName + ' "' + (x.e.innerText || x.e.value || '').trim().slice(0, 30) + '"').join(' stands upon '));
			}
		}
	}
	return wrong.slice(0, 5).join('\n');
})()`

// TestEveryPageEverywhere opens each page on a phone, in half a window, on a desk and a wide screen, light and dark, as an administrator, as
// somebody who monitors and may read, and as somebody who only monitors. No page is wider than its window, no line ends within a word that fits, nothing stands upon something else, the
// console is quiet, and each page shows what it is for, or says why not. No link leads to a page that the table does not have. Of what an administrator
// sees with scripts, axe-core says on a phone and on a desk, light and dark, that it is accessible.
func TestEveryPageEverywhere(t *testing.T) {
	t.Parallel()
	checker, err := os.ReadFile(axe)
	if err != nil {
		t.Fatalf("%v: make deps", err)
	}
	c := startCurfew(t)
	filled := fillEveryPage(t, c)
	b := openBrowser(t, c.http)
	b.axe = string(checker)
	b.open("/login")
	b.accessible("/login")
	b.logIn()
	b.choosesATheme()
	b.breaksALayout()
	for _, who := range []string{"guest", "eye", "blind"} {
		if who != "guest" {
			b.as(who)
		}
		b.everyPage(who, filled)
		b.axe = ""
	}
}

// TestEveryPageWithoutScripts is the same in a browser that runs none, as an administrator: what others see is the server's matter.
func TestEveryPageWithoutScripts(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	filled := fillEveryPage(t, c)
	b := openBrowser(t, c.http)
	b.logIn()
	b.withoutScripts()
	b.choosesATheme()
	b.breaksALayout()
	b.everyPage("guest", filled)
}

// everyPage looks at the pages, as one user.
func (b *browser) everyPage(who string, filled *strings.Replacer) {
	b.Helper()
	for _, path := range slices.Sorted(maps.Keys(everyPage)) {
		if who != "guest" && strings.HasPrefix(path, "/scheduled/cancel") {
			continue // the message is guest's: for others the page does not exist
		}
		b.everywhere(who, filled.Replace(path), everyPage[path])
	}
	b.quiet()
}

// choosesATheme has the page in each theme, and in the end in the browser's.
func (b *browser) choosesATheme() {
	b.Helper()
	for _, theme := range []string{"light", "dark", "system"} {
		b.click("button[name=theme][value=" + theme + "]")
		b.until(fmt.Sprintf("document.readyState === 'complete' && (document.documentElement.dataset.theme || 'system') === %q", theme))
	}
}

// breaksALayout sees that what is wrong with a layout is found.
func (b *browser) breaksALayout() {
	b.Helper()
	b.open("/publish")
	b.until("document.readyState === 'complete'")
	b.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('h1').innerText += ' 7'"))
	for property, finds := range map[string]string{
		"width: 3000px": "wider than the window", "position: relative; top: 60px": "stands upon", "width: 30px; white-space: nowrap; overflow-x: auto": "is off the screen",
		"width: 140px; word-break: break-all": "is broken within",
	} {
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector('h1').style = %q", property)))
		if wrong := evaluate[string](b, layout); !strings.Contains(wrong, finds) {
			b.Errorf("with %s the layout is said to be %q", property, wrong)
		}
	}
}

// wrongLayout is what is wrong once the charts have been drawn for the window.
func (b *browser) wrongLayout() (wrong string) {
	b.Helper()
	for range 20 {
		if wrong = evaluate[string](b, layout); wrong == "" {
			return ""
		}
		b.do(chromedp.Sleep(100 * time.Millisecond))
	}
	return wrong
}

// everywhere opens a page, and looks at it in every window.
func (b *browser) everywhere(who, path, shows string) {
	b.Helper()
	b.do(chromedp.EmulateViewport(1400, 1000))
	b.open(path)
	b.until("document.readyState === 'complete' && document.body !== null && document.body.innerText !== ''")
	text := evaluate[string](b, "document.body.innerText + [...document.querySelectorAll('input, textarea')].map(e => e.value).join()")
	refused := slices.ContainsFunc(refusals, func(says string) bool { return strings.Contains(text, says) })
	if !strings.Contains(text, shows) && (who == "guest" || !refused) {
		b.Errorf("%s as %s does not show %q:\n%s", path, who, shows, text)
	}
	widths := []int64{390, 900, 1400, 2560}
	if refused && who != "guest" { // a refusal stands alone, and looks the same everywhere
		widths = widths[:1]
	}
	for _, wide := range widths {
		for _, dark := range []bool{false, true} {
			if dark && wide != 390 { // colors change no places; on a phone to be sure
				continue
			}
			b.do(chromedp.EmulateViewport(wide, 1000))
			b.dark(dark)
			if wrong := b.wrongLayout(); wrong != "" {
				b.Errorf("%s as %s, %d px, dark %v:\n%s", path, who, wide, dark, wrong)
			}
		}
	}
	b.dark(false)
	if b.axe != "" {
		b.accessible(path)
	}
	for _, to := range evaluate[[]string](b, "[...document.links].filter(a => a.origin === location.origin && !a.hasAttribute('download')).map(a => a.pathname)") {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(everyPage)), func(known string) bool {
			known, _, _ = strings.Cut(known, "?")
			return known == to
		}) {
			b.Errorf("%s leads to %s, which is not in the table", path, to)
		}
	}
}

// done makes a request of guest to the management API that has to succeed, and returns the answer.
func (c *curfew) done(t *testing.T, method, path, body string) string {
	t.Helper()
	status, answer := c.request("guest", "guest", method, "/api/"+path, body)
	if status >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return answer
}
