package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

const hostileName = `"><img src=x onerror=alert(1)><script>alert(2)</script>`

// fillDashboard gives a Curfew queues with deadlines ahead, dead letters, and names that mean ill.
func fillDashboard(t *testing.T, c *curfew) {
	t.Helper()
	ch := openChannel(t, dial(t, c.url))
	declare := func(name string, args amqp091.Table) {
		_, err := ch.QueueDeclare(name, true, false, false, false, args)
		check(t, err)
	}
	declare("orders.expired", nil)
	declare("orders.payment", amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.expired"})
	declare(hostileName, amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.expired"})
	publish := func(queue, expiration, body string) {
		check(t, ch.PublishWithContext(t.Context(), "", queue, false, false, amqp091.Publishing{
			Expiration: expiration, Body: []byte(body), MessageId: "m-" + expiration, Headers: amqp091.Table{"evil": hostileName}, DeliveryMode: amqp091.Persistent,
		}))
	}
	for i := range 60 {
		publish("orders.payment", fmt.Sprint(1_200_000+i*10_000), fmt.Sprintf(`{"order": %d}`, i))
	}
	for range 25 {
		publish(hostileName, "1", hostileName)
	}
	publish(hostileName, "600000", hostileName)
	eventually(t, startLimit, "dead letters", func() bool {
		q, err := ch.QueueDeclarePassive("orders.expired", true, false, false, false, nil)
		return err == nil && q.Messages == 25
	})
}

// TestDashboardInABrowser clicks through every page.
func TestDashboardInABrowser(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	b := openBrowser(t, c.http)
	b.do(chromedp.EmulateViewport(1280, 960))
	b.logIn()
	b.shows("No deadlines ahead")
	b.shows("No message expired since")
	b.screenshot("empty")
	fillDashboard(t, c)
	b.shows("61 within") // by itself
	b.shows("orders.payment")
	b.shows("<script>alert(2)</script>") // as text
	b.screenshot("overview")
	for _, span := range []string{"1 min", "7 d"} {
		b.press(span)
		b.until(fmt.Sprintf("document.querySelector('.choices b') !== null && document.querySelector('.choices b').innerText === %q", span))
	}
	b.click("a[href*='late=5m']")
	b.shows("in the last 5 min")
	b.follow("Queues", "Queues")
	b.follow("orders.payment", "orders.payment")
	b.shows("due in")
	b.follow("Show bodies", "orders.payment")
	b.shows(`{"order": 0}`)
	b.screenshot("queue")
	b.follow("Tail", "orders.payment")
	b.shows(`{"order": 59}`)
	b.follow("Queues", "Queues")
	b.follow(hostileName, hostileName)
	b.follow("Show bodies", hostileName)
	b.shows(hostileName)
	b.follow("Audit", "Audit")
	b.follow("Expiries", "Audit")
	b.shows("dead-lettered")
	b.follow("Incidents", "Incidents")
	b.shows("CurfewDeadlineMissed")
	maintainAndEnd(b)
	replayAll(b)
	changeDeadline(b)
	moveInFiles(b)
	if n := evaluate[int](b, "[...document.scripts].filter(s => !s.src.startsWith(location.origin + '/assets/')).length"); n != 0 {
		t.Errorf("%d scripts in the page that are not its own", n)
	}
	b.quiet()
}

// maintainAndEnd begins a maintenance window and ends it.
func maintainAndEnd(b *browser) {
	b.Helper()
	b.do(chromedp.SendKeys("form[action='/maintenance'] input[name=queue]", "orders.*"))
	b.click("form[action='/maintenance'] button")
	b.shows("orders.*")
	b.click("form[action='/maintenance/end'] button")
	b.until("document.querySelector(\"form[action='/maintenance/end']\") === null")
}

// changeDeadline gives the first message more time and has it expire then.
func changeDeadline(b *browser) {
	b.Helper()
	b.open("/queue?vhost=/&name=orders.payment")
	b.follow("Change…", "A message's deadline")
	b.send("/deadline", "Dry run…", "by", "2h")
	b.shows("The message gets the deadline")
	b.screenshot("deadline")
	b.send("/deadline", "Change the deadline")
	b.shows("has its new deadline")
	b.shows("due in 2 h")
	b.follow("Change…", "A message's deadline")
	b.send("/deadline", "Dry run…", "fire", "1")
	b.shows("The message expires now.")
	b.send("/deadline", "Change the deadline")
	b.shows("The message has expired.")
}

// moveInFiles has a dead letter twice by a file, replays one of them with another body and deletes the other by its number.
func moveInFiles(b *browser) {
	b.Helper()
	b.open("/dead-letter?vhost=/&name=orders.expired")
	b.shows("Select the page")
	b.screenshot("files")
	// What is downloaded of all, as the file that somebody chooses.
	b.do(chromedp.Evaluate[chromedp.Void](`(async () => {
		const form = new URLSearchParams(new FormData(document.querySelector('form.letters')));
		form.set('of', 'all');
		const text = await (await fetch('/dead-letters/export', {method: 'POST', body: form})).text();
		const files = new DataTransfer();
		files.items.add(new File([text], 'letters.jsonl'));
		document.querySelector('input[type=file]').files = files.files;
		window.lines = text.trim().split('\n').length;
	})()`))
	b.until("window.lines === 1")
	b.click("form[action='/dead-letters/import'] button")
	b.shows("1 message imported.")
	b.click("a.what")
	b.shows("Properties and headers")
	b.screenshot("message")
	b.click("button[data-copy]")
	b.until("document.querySelector('button[data-copy]').innerText !== 'Copy'") // whether it may use the clipboard is the browser's
	b.follow("Change and replay…", "Change a dead letter")
	b.do(chromedp.SetValue("textarea[name=body]", "put right"))
	b.screenshot("edit")
	b.click("form.sheet button.primary")
	b.shows("What has changed")
	b.shows("+put right")
	b.screenshot("review")
	b.click("button[value=send]")
	b.shows("1 message replayed.")
	b.open("/queue?vhost=/&name=orders.payment&from=tail&bodies=1")
	b.shows("put right")
	b.open("/dead-letter?vhost=/&name=orders.expired")
	b.click("button[value=selected].danger")
	b.shows("Select messages first")
	b.click("input[name=pick]")
	b.click("button[value=selected].danger")
	b.shows("Delete 1 message for good?")
	b.screenshot("purge")
	b.do(chromedp.SendKeys("input[name=confirm]", "2\r"))
	b.shows("Nothing was deleted")
	b.do(chromedp.SendKeys("input[name=confirm]", "1\r"))
	b.shows("1 message deleted.")
	b.shows("no dead letters")
}

// replayAll makes a dry run of a replay and confirms it.
func replayAll(b *browser) {
	b.Helper()
	b.follow("Dead letters", "Dead letters")
	b.follow("orders.expired", "orders.expired")
	b.shows("expired in")
	b.screenshot("deadletters")
	b.click("button[value=all]")
	b.shows("Replay 25 messages?")
	b.shows("would expire there again")
	b.do(chromedp.SetValue("form.filter input[name=ttl]", "none"))
	b.click("form.filter button")
	b.shows("the messages would wait there")
	b.screenshot("try")
	b.click("form.doing button")
	b.until("['done', '25'].every(text => [...document.querySelectorAll('td')].some(e => e.innerText === text))")
}

// TestDashboardByKeyboard logs in, skips to the content, opens a page and pauses, without a mouse.
func TestDashboardByKeyboard(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	fillDashboard(t, c)
	b := openBrowser(t, c.http)
	b.open("/queues")
	b.do(chromedp.WaitVisible("input[name=name]"))
	b.until("document.activeElement !== null && document.activeElement.name === 'name'")
	b.do(chromedp.KeyEvent("guest"), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("guest"), chromedp.KeyEvent(kb.Enter))
	b.until("location.pathname === '/queues' && document.readyState === 'complete'") // where it was to go
	var stops []string
	for range 21 {
		b.do(chromedp.KeyEvent(kb.Tab))
		stops = append(stops, evaluate[string](b, "(document.activeElement.nodeName === 'SELECT' ? document.activeElement.name : document.activeElement.innerText || document.activeElement.name || '').trim()"))
		if !evaluate[bool](b, "document.activeElement.matches(':focus-visible')") {
			t.Errorf("the focus at %q cannot be seen", stops[len(stops)-1])
		}
	}
	want := "Skip to content,Curfew,Overview,Queues,Exchanges,Connections,Dead letters,Incidents,Audit,Policies,Users,/,Pause updates,Log out,New queue…,Publish…,q,purpose,sort,Filter,Queue"
	if got := strings.Join(stops, ","); got != want {
		t.Errorf("tab stops %s, not %s", got, want)
	}
	b.do(chromedp.KeyEvent(kb.Enter)) // sorts by name
	b.until("document.readyState === 'complete' && document.querySelector('th[aria-sort=ascending]') !== null")
	b.do(chromedp.Focus("#pause"), chromedp.KeyEvent(" "))
	b.until("document.getElementById('pause').innerText === 'Updates paused'")
	// The palette: by "/", by arrow keys, and closed by Escape.
	b.do(chromedp.KeyEvent("/"), chromedp.WaitVisible("#palette input"), chromedp.KeyEvent("orders"))
	b.until("document.querySelectorAll('#hits li').length === 2 && document.querySelector('#hits li[aria-selected=true]').innerText.includes('orders.expired')")
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	b.until("document.getElementById(document.querySelector('#palette input').getAttribute('aria-activedescendant')).innerText === 'orders.payment queue in /'")
	b.screenshot("palette")
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until("!document.getElementById('palette').open && document.activeElement.id === 'pause'")
	b.do(chromedp.KeyEvent("/"), chromedp.KeyEvent("payment"), chromedp.KeyEvent(kb.Enter)) // before the answer
	b.until("location.pathname === '/queue' && document.readyState === 'complete' && document.querySelector('h1').innerText === 'orders.payment'")
	b.quiet()
}

// TestDashboardOnAPhone: no page is wider than the screen, in both schemes.
func TestDashboardOnAPhone(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	fillDashboard(t, c)
	b := openBrowser(t, c.http)
	b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	b.logIn()
	backs := map[bool]string{}
	for _, dark := range []bool{false, true} {
		b.dark(dark)
		for _, path := range []string{"/", "/queues", "/queue?vhost=/&name=orders.payment&bodies=1", "/deadline?vhost=/&name=orders.payment&seq=1", "/dead-letters", "/dead-letter?vhost=/&name=orders.expired", "/dead-letters/message?vhost=/&name=orders.expired&seq=1", "/dead-letter/edit?vhost=/&name=orders.expired&seq=1", "/incidents", "/audit"} {
			b.open(path)
			if wide := evaluate[int](b, "document.documentElement.scrollWidth"); wide > 390 {
				t.Errorf("%s is %d wide", path, wide)
			}
		}
		backs[dark] = evaluate[string](b, "getComputedStyle(document.body).backgroundColor")
	}
	if backs[true] == backs[false] {
		t.Errorf("dark is %s as light is", backs[true])
	}
	b.open("/")
	if edge := evaluate[float64](b, "Math.max(...[...document.querySelectorAll('header nav a')].map(a => a.getBoundingClientRect().right))"); edge > 390 {
		t.Errorf("the last page begins to be seen only when somebody scrolls to %v", edge)
	}
	b.screenshot("phone")
	b.quiet()
}

// TestDashboardLeavesPeopleAlone: what somebody types and marks stays while the page follows what happens.
func TestDashboardLeavesPeopleAlone(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	b := openBrowser(t, c.http)
	b.logIn()
	b.open("/queues")
	b.do(chromedp.SendKeys("input[name=q]", "half a wo"))
	b.do(chromedp.Evaluate[chromedp.Void]("window.untouched = true"))
	fillDashboard(t, c)
	b.shows("orders.payment")
	if got := evaluate[string](b, "document.activeElement.value + window.untouched"); got != "half a wotrue" {
		t.Errorf("the field has %q now", got)
	}
	b.do(chromedp.Evaluate[chromedp.Void]("getSelection().selectAllChildren(document.querySelector('tbody tr'))"))
	marked := evaluate[string](b, "getSelection().toString()")
	b.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('tbody a').focus(); window.focused = document.activeElement"))
	ch := openChannel(t, dial(t, c.url))
	_, err := ch.QueueDeclare("zzz", false, false, false, false, nil)
	check(t, err)
	if got := evaluate[string](b, "getSelection().toString()"); got != marked {
		t.Errorf("what was marked is %q now", got)
	}
	b.do(chromedp.Evaluate[chromedp.Void]("getSelection().removeAllRanges()"))
	b.shows("zzz")
	if !evaluate[bool](b, "document.activeElement === window.focused") {
		t.Error("the focus is elsewhere")
	}
	b.quiet()
}

// TestCommandsAreCopied: each command on a page has a button that copies it, whether it was there when the page was opened or came by a live update.
func TestCommandsAreCopied(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	b := openBrowser(t, c.http)
	b.logIn()
	b.open("/incidents")
	b.until("document.readyState === 'complete'")
	b.do(chromedp.Evaluate[chromedp.Void](`window.untouched = true; document.execCommand = () => { window.copied = getSelection().toString(); return true; }; 0`))
	copies := func() {
		t.Helper()
		const commands = `[...document.querySelectorAll("main code")].filter(c => c.innerText.startsWith("curfew "))`
		b.until(commands + ".length > 0")
		const wrong = commands + `.filter(c => {
			const button = c.parentElement.querySelector("button");
			if (!button || button.offsetWidth === 0) return true;
			window.copied = "";
			button.click();
			return window.copied !== c.innerText || button.innerText === "Copy";
		}).map(c => c.innerText).join("; ")`
		if got := evaluate[string](b, wrong); got != "" {
			t.Errorf("not copied: %s", got)
		}
	}
	ch := openChannel(t, dial(t, c.url))
	_, err := ch.QueueDeclare("orders", true, false, false, false, amqp091.Table{"x-message-ttl": 1, "x-dead-letter-exchange": "gone"})
	check(t, err)
	check(t, ch.PublishWithContext(t.Context(), "", "orders", false, false, amqp091.Publishing{}))
	b.shows("Dead letters are parked")
	copies()
	if !evaluate[bool](b, "window.untouched === true") {
		t.Error("the page was loaded again")
	}
	b.withoutScripts()
	b.open("/queue?vhost=/&name=orders")
	b.shows("curfew dlq groups")
	if got := evaluate[int](b, `[...document.querySelectorAll(".command button")].filter(b => b.offsetWidth > 0).length`); got != 0 {
		t.Errorf("without scripts there are %d buttons", got)
	}
	b.quiet()
}
