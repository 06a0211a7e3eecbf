package integration

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

// send fills in the form with an action as a person does, and presses one of its buttons. A box is checked for "1".
func (b *browser) send(action, button string, fields ...string) {
	b.Helper()
	values, err := json.Marshal(append([]string{}, fields...))
	check(b.T, err)
	found := fmt.Sprintf("[...document.forms].find(f => f.getAttribute('action') === %q)", action)
	b.until("document.readyState === 'complete' && " + found + " !== undefined")
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
		const form = %s, values = %s;
		for (const details of form.querySelectorAll('details')) details.open = true;
		for (let i = 0; i < values.length; i += 2) {
			const all = [...form.elements].filter(e => e.name === values[i]);
			const field = all.find(e => e.type === 'checkbox' && e.value === values[i+1]) || all[0];
			if (field.type === 'checkbox') { field.checked = values[i+1] !== ''; } else { field.value = values[i+1]; }
		}
		[...form.querySelectorAll('button')].find(e => e.innerText.trim() === %q).click();
	})()`, found, values, button)))
}

// as logs out, and in as another user.
func (b *browser) as(name string) {
	b.Helper()
	b.click("form[action='/logout'] button")
	b.until("document.readyState === 'complete' && document.querySelector('input[name=password]') !== null")
	b.send("/login", "Log in", "name", name, "password", name)
	b.until("document.querySelector('header nav') !== null")
}

// pictures keeps a picture of a page on a phone and a desk, light and dark.
func (b *browser) pictures(name string) {
	b.Helper()
	for _, wide := range []int64{390, 1400} {
		for _, dark := range []bool{false, true} {
			b.do(chromedp.EmulateViewport(wide, 1000))
			b.dark(dark)
			b.screenshot(fmt.Sprintf("%s-%d-%v", name, wide, dark))
		}
	}
	b.dark(false)
	b.do(chromedp.EmulateViewport(1400, 1000))
	if over := evaluate[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
		b.Errorf("%s is %d px wider than the window", name, over)
	}
}

// TestFormsInABrowser goes through every form, as an administrator and as somebody who only monitors.
func TestFormsInABrowser(t *testing.T) {
	t.Parallel()
	everyForm(t, true)
}

// TestFormsWithoutScripts does so in a browser that runs none.
func TestFormsWithoutScripts(t *testing.T) {
	t.Parallel()
	everyForm(t, false)
}

func everyForm(t *testing.T, scripts bool) {
	c := startCurfew(t)
	b := openBrowser(t, c.http)
	b.do(chromedp.EmulateViewport(1400, 1000))
	b.logIn()
	if !scripts {
		b.withoutScripts()
	}
	b.formsOfTopology()
	b.formsOfMessages()
	b.formsOfScheduled()
	b.holders(c)
	b.formsOfPolicies()
	b.formsOfVHosts()
	b.formsOfUsers()
	b.formsRefused()
}

func (b *browser) formsOfTopology() {
	b.Helper()
	b.open("/queue/new")
	b.pictures("queue-new")
	b.send("/queue/new", "Create the queue", "name", "orders", "x-message-ttl", "soon", "x-max-length", "100")
	b.shows(`"soon" is invalid: want a duration`)
	b.until("document.querySelector('[name=x-message-ttl]').getAttribute('aria-invalid') === 'true' && document.querySelector('[name=x-max-length]').value === '100'")
	b.pictures("queue-wrong")
	b.send("/queue/new", "Create the queue", "x-message-ttl", "10m", "dead_letters", "queue")
	b.shows("Queue declared")
	b.shows("No consumers, and no client holds a message")
	b.open("/queue/new?name=orders")
	b.send("/queue/new", "Create the queue", "x-message-ttl", "20m")
	b.shows("inequivalent arg 'x-message-ttl'")
	b.open("/queue/new?name=orders.dead")
	b.send("/queue/new", "Create the queue")
	b.shows("Queue declared")
	b.open("/queue/new?name=orders.late")
	b.send("/queue/new", "Create the queue", "dead_letters", "exchange", "x-dead-letter-routing-key", "orders.dead")
	b.shows("Queue declared")
	b.open("/exchange/new")
	b.send("/exchange/new", "Create the exchange", "name", "shop", "type", "topic")
	b.shows("Exchange declared")
	b.follow("Bind…", "New binding")
	b.send("/binding/new", "Bind", "destination", "nowhere", "key", "orders.*")
	b.shows("no queue 'nowhere'")
	b.until("document.querySelector('[name=key]').value === 'orders.*'")
	b.send("/binding/new", "Bind", "destination", "orders")
	b.shows("Binding added")
	b.pictures("exchange")
}

func (b *browser) formsOfMessages() {
	b.Helper()
	b.follow("Publish…", "Publish")
	b.pictures("publish")
	b.send("/publish", "Publish", "key", "orders.eu", "body", "{\"id\": 1}", "headers", "{", "expiration", "5m")
	b.shows("It is not JSON")
	b.send("/publish", "Publish", "headers", `{"tenant": "acme"}`, "message_id", "m1")
	b.shows("a queue took it")
	b.send("/publish", "Publish", "key", "nobody", "expiration", "", "deadline", "2030-01-31T15:00:00")
	b.shows("no queue took it")
	b.send("/publish", "Publish", "key", "orders.us", "deadline", "2031-01-31T15:00:00")
	b.shows("a queue took it")
	b.open("/queue/get?vhost=/&name=orders")
	b.send("/queue/get", "Get it", "then", "requeue")
	b.shows("It is back in the queue")
	b.shows("acme")
	b.pictures("got")
	b.send("/queue/get", "Get it", "then", "ack")
	b.shows("It left the queue")
	b.open("/queue/purge?vhost=/&name=orders")
	b.shows("Delete 1 message for good?")
	b.send("/queue/purge", "Delete them", "confirm", "9")
	b.shows("Nothing was deleted")
	b.pictures("purge")
	b.send("/queue/purge", "Delete them", "confirm", "1")
	b.shows("1 message deleted")
}

// holders looks at who holds messages past their deadlines, and closes the connection.
func (b *browser) holders(c *curfew) {
	b.Helper()
	connection, err := amqp091.DialConfig(c.url, amqp091.Config{Properties: amqp091.Table{"connection_name": "stuck-worker", "product": "test"}})
	check(b.T, err)
	b.Cleanup(func() { _ = connection.Close() })
	ch := openChannel(b.T, connection)
	check(b.T, ch.Qos(8, 0, false))
	for range 3 {
		check(b.T, ch.PublishWithContext(b.Context(), "", "orders", false, false, amqp091.Publishing{Expiration: "300"}))
	}
	held, err := ch.ConsumeWithContext(b.Context(), "orders", "worker-1", false, false, false, false, nil)
	check(b.T, err)
	for range 3 {
		<-held
	}
	eventually(b.T, startLimit, "three are past their deadlines", func() bool {
		b.open("/consumers?q=orders")
		return evaluate[bool](b, "document.querySelector('td .bad') !== null && document.querySelector('td .bad').innerText === '3'")
	})
	b.shows("stuck-worker")
	b.pictures("consumers")
	b.open("/queue?vhost=/&name=orders")
	b.shows("worker-1")
	b.pictures("queue")
	b.follow("Connections", "Connections")
	b.pictures("connections")
	b.follow("stuck-worker", "stuck-worker")
	b.pictures("connection")
	b.follow("Close…", "Close the connection")
	b.pictures("close")
	gone := connection.NotifyClose(make(chan *amqp091.Error, 1))
	b.send("/connection/close", "Close the connection", "reason", "it is stuck")
	if e := received(b.T, gone); e == nil || !strings.Contains(e.Reason, "it is stuck") {
		b.Errorf("the client is told %v", e)
	}
	eventually(b.T, answerLimit, "the connection to be gone", func() bool { // without scripts, only who asks again sees it
		b.open("/connections")
		return evaluate[bool](b, `document.body !== null && document.body.innerText.includes("No client is connected")`)
	})
}

func (b *browser) formsOfPolicies() {
	b.Helper()
	b.open("/policy/new")
	b.send("/policy/new", "Dry run…", "name", "ttl", "pattern", "^orders", "definition", "{")
	b.shows("It is not JSON")
	b.send("/policy/new", "Dry run…", "definition", `{"message-ttl": 60000}`)
	b.shows("get a time to live")
	b.shows("Dead letters go to")
	b.pictures("policy-tried")
	b.send("/policy/new", "Set it", "pattern", "^orders$")
	b.shows("Policy set")
	b.pictures("policies")
	b.follow("Delete…", "Delete the policy")
	b.send("/policy/delete", "Delete the policy")
	b.shows("Policy deleted")
}

// TestSessionEndsInAForm: after somebody has logged out in one tab, a list in another comes to the login by itself. What was typed into a form in a
// third counts after the next login.
func TestSessionEndsInAForm(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	b := openBrowser(t, c.http)
	b.logIn()
	list, login := b.tab(), b.tab()
	list.open("/queues")
	b.open("/queue/new")
	login.open("/incidents")
	login.click("form[action='/logout'] button")
	list.until("location.pathname === '/login'")
	b.send("/queue/new", "Create the queue", "name", "typed", "x-message-ttl", "10m")
	b.shows("Your session has ended, and nothing was done")
	b.pictures("session-over")
	login.send("/login", "Log in", "name", "guest", "password", "guest")
	login.until("document.querySelector('header nav') !== null")
	b.do(chromedp.Reload())
	b.shows("Queue declared")
	b.shows("Time to live 10m")
}

// tab opens another one in the same browser.
func (b *browser) tab() *browser {
	b.Helper()
	ctx, closePage := chromedp.NewContext(b.ctx)
	b.Cleanup(closePage)
	return &browser{T: b.T, ctx: ctx, base: b.base}
}

// formsOfScheduled puts off and cancels a delayed message that the user has published.
func (b *browser) formsOfScheduled() {
	b.Helper()
	b.open("/publish")
	b.send("/publish", "Publish", "key", "orders.dead", "headers", `{"x-delay": 3600000}`, "message_id", "later / & <b>")
	b.shows("Published")
	b.open("/exchanges")
	b.follow("Scheduled by you", "Scheduled by you")
	b.shows("later / & <b>")
	b.follow("Reschedule…", "Reschedule the message")
	b.send("/scheduled/change", "Reschedule", "in", "soon")
	b.shows(`"soon" is invalid`)
	b.pictures("scheduled-wrong")
	b.send("/scheduled/change", "Reschedule", "in", "72h")
	b.shows("Message rescheduled")
	b.pictures("scheduled")
	b.follow("Cancel…", "Cancel the message")
	b.pictures("scheduled-cancel")
	b.send("/scheduled/cancel", "Cancel the message")
	b.shows("Message cancelled")
	b.shows("No delayed message with a message-id of yours waits")
	b.open("/exchange?vhost=/&name=shop")
}

// formsOfVHosts makes a virtual host, describes, limits, protects and deletes it.
func (b *browser) formsOfVHosts() {
	b.Helper()
	b.open("/vhosts")
	b.follow("New virtual host…", "New virtual host")
	b.send("/vhost/new", "Create the virtual host", "name", "/", "description", "for the shop")
	b.shows("A virtual host with this name already exists")
	b.until("document.querySelector('[name=description]').value === 'for the shop'")
	b.pictures("vhost-wrong")
	b.send("/vhost/new", "Create the virtual host", "name", oddVHost, "default_queue_type", "quorum")
	b.shows("Virtual host created. You have all permissions in it")
	b.until("document.querySelector('form[action=\"/vhost\"] [name=default_queue_type]').value === 'quorum'")
	b.send("/vhost", "Change", "description", "for the shop & its \"clients\"")
	b.shows("Virtual host changed")
	b.send("/vhost", "Change", "max-queues", "many", "max-connections", "7")
	b.shows(`"many" is not a whole number`)
	b.until("document.querySelector('[name=max-connections]').value === '7'")
	b.send("/vhost", "Change", "max-queues", "1")
	b.shows("Virtual host changed")
	b.shows("max-connections = 7")
	another := b.tab() // each changes what its user has typed into
	another.open("/vhost?name=" + url.QueryEscape(oddVHost))
	b.send("/vhost", "Change", "max-queues", "2")
	b.shows("max-queues = 2")
	another.send("/vhost", "Change", "max-connections", "8")
	another.shows("max-connections = 8")
	another.shows("max-queues = 2")
	b.open("/vhost?name=" + url.QueryEscape(oddVHost))
	b.send("/vhost", "Change", "max-queues", "1", "max-connections", "")
	b.shows("max-queues = 1")
	b.until("!document.body.innerText.includes('max-connections')")
	b.pictures("vhost")
	b.open("/queue/new?name=first&vhost=" + url.QueryEscape(oddVHost))
	b.send("/queue/new", "Create the queue")
	b.shows("Queue declared")
	b.shows("quorum")
	b.open("/queue/new?name=second&vhost=" + url.QueryEscape(oddVHost))
	b.send("/queue/new", "Create the queue")
	b.shows("(1) is reached")
	b.open("/vhosts")
	b.follow(oddVHost, oddVHost)
	b.send("/vhost", "Change", "protected_from_deletion", "1")
	b.until("![...document.links].some(a => a.innerText.trim() === 'Delete…')")
	b.open("/vhost/delete?name=" + url.QueryEscape(oddVHost)) // from a tab of before
	b.send("/vhost/delete", "Delete the virtual host", "confirm", oddVHost)
	b.shows("because it is protected from deletion")
	b.open("/vhosts")
	b.follow(oddVHost, oddVHost)
	b.send("/vhost", "Change", "protected_from_deletion", "")
	b.shows("Virtual host changed")
	b.follow("Delete…", "Delete the virtual host")
	b.send("/vhost/delete", "Delete the virtual host", "confirm", "shop")
	b.shows("Nothing was deleted")
	b.pictures("vhost-delete")
	b.send("/vhost/delete", "Delete the virtual host", "confirm", oddVHost)
	b.shows("Virtual host deleted")
	b.until("![...document.links].some(a => a.innerText.includes('client'))")
}

// oddVHost is the name of a virtual host that has to be written differently in paths, queries and pages.
const oddVHost = `shop/eu %2F "client's" <b>&amp; 🐇`

func (b *browser) formsOfUsers() {
	b.Helper()
	b.open("/user/new")
	b.send("/user/new", "Add the user", "name", "eye", "tag", "monitoring")
	b.shows("Fill this in.")
	b.until("[...document.querySelectorAll('[name=tag]')].find(e => e.value === 'monitoring').checked")
	b.send("/user/new", "Add the user", "password", "x")
	b.shows("User created")
	b.send("/user/permission", "Set permissions", "read", "(")
	b.shows("invalid")
	b.send("/user/permission", "Set permissions", "read", "^nothing$", "write", "", "configure", "")
	b.shows("Permissions changed")
	b.pictures("user")
	b.follow("Clear…", "Clear the permissions of")
	b.send("/user/permission/clear", "Clear them")
	b.shows("Permissions changed")
	b.formsOfTopicPermissions()
	b.send("/user/password", "Set the password", "password", "eye")
	b.shows("Password changed")
	b.open("/user/new?name=guest")
	b.send("/user/new", "Add the user", "password", "x")
	b.shows("A user with this name already exists")
	b.send("/user/new", "Add the user", "name", "nobody", "password", "nobody")
	b.shows("User created")
	b.open("/users")
	b.pictures("users")
}

// formsOfTopicPermissions are on the page of the user eye.
func (b *browser) formsOfTopicPermissions() {
	b.Helper()
	b.shows("the user may use every routing key at topic exchanges")
	b.send("/user/topic", "Set topic permissions", "exchange", "shop", "write", "(", "read", "^orders\\.")
	b.shows("invalid")
	b.until("document.querySelector('form[action=\"/user/topic\"] [name=read]').value === '^orders\\\\.'")
	b.send("/user/topic", "Set topic permissions", "write", "^orders\\.eu$")
	b.shows("Topic permissions changed")
	b.shows("^orders\\.eu$")
	b.pictures("user-topics")
	b.click("nav[aria-label='Actions on / shop'] a") // Change…
	b.until("document.querySelector('form[action=\"/user/topic\"] [name=exchange]').value === 'shop'")
	b.send("/user/topic", "Set topic permissions", "write", "", "read", ".*")
	b.shows("Topic permissions changed")
	b.until("!document.body.innerText.includes('^orders')")
	b.follow("Clear…", "Clear the topic permissions of")
	b.send("/user/topic/clear", "Clear them")
	b.shows("the user may use every routing key at topic exchanges")
}

// formsRefused: somebody who only monitors sees what there is, and changes nothing. A user without a tag does not get in.
func (b *browser) formsRefused() {
	b.Helper()
	b.as("eye")
	b.until("![...document.links].some(a => a.innerText.trim() === 'Users')")
	b.open("/exchanges")
	b.shows("shop")
	for path, button := range map[string]string{"/queue/new?name=mine": "Create the queue", "/exchange/new?name=mine": "Create the exchange"} {
		b.open(path)
		action, _, _ := strings.Cut(path, "?")
		b.send(action, button)
		b.shows("no permissions in the virtual host")
	}
	b.until("document.querySelector('form.sheet') !== null")
	for _, path := range []string{"/publish?key=orders", "/queue/get?vhost=/&name=orders", "/queue/purge?vhost=/&name=orders", "/queue/delete?vhost=/&name=orders"} {
		b.open(path)
		b.shows("This user lacks the permission")
		b.until("document.querySelector('form.sheet') === null")
	}
	b.open("/policy/new?vhost=/&name=p&pattern=x")
	b.shows("users with the tag policymaker or administrator")
	b.until("document.querySelector('form[action=\"/policy/new\"]') === null")
	b.open("/users")
	b.shows("users with the tag administrator")
	b.click("form[action='/logout'] button")
	b.send("/login", "Log in", "name", "nobody", "password", "nobody")
	b.shows("This user may not open the dashboard")
}
