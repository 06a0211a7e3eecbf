package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chromedp/chromedp"
	"github.com/rabbitmq/amqp091-go"

	"curfew/integration/testenv"
)

// night is a Curfew with all its faces.
type night struct {
	*testing.T
	*curfew
	browser *browser
	sinks   *sinks
}

// standing is an incident as the API has it.
type standing struct {
	Condition, Level, Summary string
	Count                     int64
}

// toldWithin is the promise: it holds unless Curfew itself had no processor.
const toldWithin = 10 * time.Second

// TestNight plays a night, and asks every face after each step: they give the same verdict and the same numbers, somebody is told within ten
// seconds and once more when it is over, and of nothing else.
func TestNight(t *testing.T) {
	t.Parallel()
	redis := testenv.StartRedis(t)
	s := startSinks(t)
	c := startCurfew(t, "REDIS_URL="+redis.URL, "ALERT_URLS=webhook+"+s.url+"/webhook")
	for _, vhost := range []string{"billing", "mail", "shop"} {
		c.done(t, "PUT", "vhosts/"+vhost, "")
	}
	n := &night{T: t, curfew: c, browser: openBrowser(t, c.http), sinks: s}
	n.browser.logIn()
	dial := func(vhost, name string) *amqp091.Connection {
		properties := amqp091.NewConnectionProperties()
		properties.SetClientConnectionName(name)
		conn, err := amqp091.DialConfig(c.url+"/"+vhost, amqp091.Config{Properties: properties})
		check(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	connect := func(vhost, name string) *amqp091.Channel {
		ch, err := dial(vhost, name).Channel()
		check(t, err)
		return ch
	}
	declare := func(ch *amqp091.Channel, queue string, args amqp091.Table) {
		_, err := ch.QueueDeclare(queue, true, false, false, false, args)
		check(t, err)
	}
	publish := func(ch *amqp091.Channel, queue string, count int) {
		for range count {
			check(t, ch.PublishWithContext(t.Context(), "", queue, true, false, amqp091.Publishing{Body: []byte("x")}))
		}
	}
	consume := func(ch *amqp091.Channel, queue string, each func(amqp091.Delivery)) {
		deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
		check(t, err)
		go func() {
			for d := range deliveries {
				each(d)
			}
		}()
	}
	reject := func(d amqp091.Delivery) { _ = d.Reject(false) }
	n.agree("ok")

	// A dead-letter queue grows, and messages wait in a retry queue: neither is wrong.
	shop := connect("shop", "shop")
	declare(shop, "orders.failed", nil)
	declare(shop, "orders", amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.failed"})
	declare(shop, "orders.retry", amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders", "x-message-ttl": 500})
	consume(connect("shop", "orders-worker"), "orders", reject)
	publish(shop, "orders.retry", 50)
	eventually(t, startLimit, "the retries to die", func() bool {
		_, text := c.request("guest", "guest", "GET", "/api/queues/shop/orders.failed", "")
		return strings.Contains(text, `"messages_ready":50,`)
	})
	n.agree("ok")
	n.agreeQueue("shop", "orders.failed", 50, "-")

	// Dead letters are parked, and then there is silence.
	billing := connect("billing", "billing")
	declare(billing, "invoices", amqp091.Table{"x-dead-letter-exchange": "missing"})
	consume(connect("billing", "invoices-worker"), "invoices", reject)
	publish(billing, "invoices", 30)
	n.told("CurfewDeadLetterUnroutable", "firing", "curfew.undeliverable (vhost billing)", "curfew dlq groups curfew.undeliverable --vhost billing")
	n.agree("critical", "dead_letter_unroutable 30")

	// Messages that only pass through a queue, as retries do, are no dead letters.
	declare(shop, "refunds", amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.failed"})
	consume(connect("shop", "refunds-worker"), "refunds", func(amqp091.Delivery) {})
	declare(shop, "refunds.retry", amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "refunds", "x-message-ttl": 500})
	publish(shop, "refunds.retry", 7)
	n.agreeLetters(80, 30)

	// A client is stuck, while the parked ones stay.
	mail := connect("mail", "mail")
	declare(mail, "letters", amqp091.Table{"x-message-ttl": 6000})
	worker := connect("mail", "stuck-worker")
	check(t, worker.Qos(5, 0, false))
	held := make(chan amqp091.Delivery, 10)
	for range 2 { // it has two consumers on its connection
		consume(worker, "letters", func(d amqp091.Delivery) { held <- d })
	}
	publish(mail, "letters", 40)
	n.told("CurfewHeldPastDeadline", "firing", "letters (vhost mail)", "stuck-worker", "--vhost mail")
	eventually(t, startLimit, "the deadlines to pass", func() bool {
		return slices.ContainsFunc(n.standing(), func(i standing) bool { return strings.HasSuffix(i.Summary, "; behind it: 30 messages lost (expired)") })
	})
	n.agree("critical", "dead_letter_unroutable 30", "held_past_deadline 10")
	for range 10 {
		d := received(n.t, held)
		check(t, d.Ack(false))
	}
	n.told("CurfewHeldPastDeadline", "resolved")
	n.agree("critical", "dead_letter_unroutable 30")
	n.agreeQueue("mail", "letters", 0, "30")

	// What is parked is deleted.
	c.done(t, "DELETE", "queues/billing/curfew.undeliverable/contents", "")
	n.told("CurfewDeadLetterUnroutable", "resolved")
	n.agree("ok")

	// Redis is lost, and comes back.
	redis.Kill()
	n.told("CurfewScheduleDegraded", "firing")
	n.agree("degraded", "schedule_degraded 1")
	redis.Restart()
	n.told("CurfewScheduleDegraded", "resolved")
	n.agree("ok")
	n.browser.shows("Over since")
	n.browser.shows("Redis was away")

	// Curfew has no processor for two seconds, while messages come due that nobody waits for.
	declare(mail, "readings", amqp091.Table{"x-message-ttl": 500, "x-max-length": 1000})
	publish(mail, "readings", 100)
	check(t, syscall.Kill(c.pid, syscall.SIGSTOP))
	time.Sleep(2 * time.Second)
	check(t, syscall.Kill(c.pid, syscall.SIGCONT))
	eventually(t, startLimit, "the readings to expire", func() bool { return c.metric("curfew_deadlines_fired_total", `queue="readings"`) == 100 })
	time.Sleep(4 * time.Second) // in which nobody is told
	n.agree("ok")

	// The consumer of a queue leaves, and what comes after it is lost. It is started again, and fails before it consumes.
	declare(shop, "bills", amqp091.Table{"x-message-ttl": 6000})
	gone := connect("shop", "billing-worker")
	consume(gone, "bills", func(d amqp091.Delivery) { _ = d.Ack(false) })
	check(t, gone.Close())
	again := dial("shop", "billing-worker")
	go func() {
		for t.Context().Err() == nil {
			if ch, err := again.Channel(); err == nil {
				_, _ = ch.QueueDeclarePassive("deleted", true, false, false, false, nil)
			}
			time.Sleep(time.Second)
		}
	}()
	publish(shop, "bills", 5)
	const left = "billing-worker (user guest, 127.0.0.1)"
	n.told("CurfewDeadlineMissed", "firing", "bills (vhost shop)", left+" left ")
	eventually(t, startLimit, "the bills to be lost", func() bool {
		return slices.ContainsFunc(n.standing(), func(i standing) bool {
			return strings.Contains(i.Summary, "5 messages lost (expired); "+left+" left ")
		})
	})
	n.told("CurfewClientFails", "firing", left+", ", "no queue 'deleted' in vhost 'shop'", "curfew declare queue deleted --vhost shop")
	n.agree("critical", "client_fails 1", "deadline_missed 5")
	for _, command := range []string{"status", "queue show bills --vhost shop"} {
		if text, _ := n.terminal(command); !strings.Contains(strings.Join(strings.Fields(text), " "), left+" left ") {
			t.Errorf("%s does not say who left:\n%s", command, text)
		}
	}
	n.browser.open("/queue?vhost=shop&name=bills")
	n.browser.shows("The last to leave was " + left)
	n.nothingElse(8)
	n.browser.quiet()
}

// notice is what the webhook was told: the name, and firing or resolved; then what is said about it.
type notice struct{ what, text string }

func (n *night) notices() (list []notice) {
	n.sinks.mu.Lock()
	defer n.sinks.mu.Unlock()
	for line := range strings.Lines(n.sinks.text["/webhook"]) {
		var m struct {
			Status string
			Alerts []struct{ Labels, Annotations map[string]string }
		}
		if json.Unmarshal([]byte(line), &m) == nil && len(m.Alerts) > 0 {
			list = append(list, notice{m.Alerts[0].Labels["alertname"] + " " + m.Status, strings.Join(slices.Collect(maps.Values(m.Alerts[0].Annotations)), " ")})
		}
	}
	return list
}

// told waits for a notification that says some texts.
func (n *night) told(alert, status string, says ...string) {
	n.Helper()
	began := time.Now()
	eventually(n.T, startLimit, alert+" "+status, func() bool {
		i := slices.IndexFunc(n.notices(), func(one notice) bool { return one.what == alert+" "+status })
		if i >= 0 && !containsAll(n.notices()[i].text, says) {
			n.Fatalf("the notification does not say %q: %s", says, n.notices()[i].text)
		}
		return i >= 0
	})
	took := time.Since(began)
	n.Logf("%s %s after %s", alert, status, took.Round(100*time.Millisecond))
	if took > toldWithin+4*time.Second && !n.starved() { // the half of six seconds that make a message be at risk, and a second for the webhook
		n.Errorf("%s %s was told after %s", alert, status, took)
	}
}

// starved reports whether Curfew had no processor.
func (n *night) starved() bool {
	return slices.ContainsFunc(n.standing(), func(i standing) bool { return i.Condition == "processor_starved" })
}

func (n *night) standing() []standing {
	n.Helper()
	_, text := n.request("guest", "guest", "GET", "/api/curfew/incidents", "")
	var answer struct{ Incidents []standing }
	check(n.T, json.Unmarshal([]byte(text), &answer))
	return answer.Incidents
}

// agree holds every face to a verdict and to the incidents that stand, each "condition count", besides those that are worth no notification.
func (n *night) agree(verdict string, want ...string) {
	n.Helper()
	var got []standing
	eventually(n.T, startLimit, fmt.Sprintf("%s with %q", verdict, want), func() bool {
		got = slices.DeleteFunc(n.standing(), func(i standing) bool { return i.Level == "info" })
		var is []string
		for _, i := range got {
			is = append(is, fmt.Sprintf("%s %d", i.Condition, i.Count))
		}
		slices.Sort(is)
		return slices.Equal(is, want)
	})
	status, text := n.fetch("/healthz")
	if status != 200 || !strings.Contains(text, fmt.Sprintf(`"status":%q`, verdict)) {
		n.Errorf("healthz says %d %s", status, text)
	}
	var health struct{ Reasons []string }
	check(n.T, json.Unmarshal([]byte(text), &health))
	n.says("healthz", strings.Join(health.Reasons, "\n"), got)
	n.agreeStatus(verdict, got)
	for _, i := range got {
		if count := n.metric("curfew_incident", fmt.Sprintf("condition=%q", i.Condition), fmt.Sprintf("level=%q", i.Level)); int64(count) != i.Count {
			n.Errorf("the metric of %s is %v, not %d", i.Condition, count, i.Count)
		}
	}
	for _, level := range []string{"critical", "warning"} {
		of := slices.DeleteFunc(slices.Clone(got), func(i standing) bool { return i.Level != level })
		all := 0.0
		for _, i := range of {
			all += float64(i.Count)
		}
		if count := n.metric("curfew_incident", fmt.Sprintf("level=%q", level)); count != all {
			n.Errorf("the metric of %s incidents is %v, not %v", level, count, all)
		}
	}
	for _, width := range []int64{1400, 390} {
		n.agreePage(width, verdict, got)
	}
}

// spans are what goes on growing between two faces.
var spans = regexp.MustCompile(`, the longest .*? past its deadline| left [^;]* ago|, [0-9,]+ times in `)

// says holds a face to the incidents that stand.
func (n *night) says(face, text string, want []standing) {
	n.Helper()
	for _, i := range want {
		if summary := spans.Split(i.Summary, 2)[0]; !strings.Contains(text, summary) {
			n.Errorf("%s does not say %q:\n%s", face, summary, text)
		}
	}
}

// agreeQueue holds every face to how many messages of a queue are ready, and how many it has lost in the last hour: "-" where that is no loss.
func (n *night) agreeQueue(vhost, queue string, ready int, lost string) {
	n.Helper()
	eventually(n.T, startLimit, "what became of "+queue, func() bool {
		var q struct {
			Ready int  `json:"messages_ready"`
			Lost  *int `json:"lost_last_hour"`
		}
		check(n.T, json.Unmarshal([]byte(n.done(n.T, "GET", "queues/"+vhost+"/"+queue, "")), &q))
		is := "-"
		if q.Lost != nil {
			is = strconv.Itoa(*q.Lost)
		}
		return q.Ready == ready && is == lost
	})
	text, _ := n.terminal("queue list")
	if row := fmt.Sprintf(`(?s)VHOST +QUEUE( +PURPOSE)? +READY +UNACKED +AT RISK +LOST.*\n%s +%s( +[a-z-]+)? +%d +\d+ +\d+ +%s\b`, vhost, queue, ready, lost); !regexp.MustCompile(strings.TrimSuffix(row, `-\b`)).MatchString(text) {
		n.Errorf("queue list has another row than %s:\n%s", row, text)
	}
	for _, width := range []int64{1400, 390} {
		n.browser.resize(width)
		n.browser.open("/queues?vhost=" + vhost)
		row := fmt.Sprintf("[...document.querySelectorAll('tbody tr')].find(r => r.querySelector('a')?.innerText === %q)", queue)
		n.browser.until("document.readyState === 'complete' && " + row + " !== undefined")
		cells := evaluate[string](n.browser, "['Ready', 'Lost, last hour'].map(l => "+row+".querySelector(`[data-label=\"${l}\"]`)).map(c => c.innerText.trim() + (c.getBoundingClientRect().right > innerWidth ? ' out of sight' : '')).join(', ')")
		if want := fmt.Sprintf("%d, %s", ready, strings.ReplaceAll(lost, "-", "–")); cells != want {
			n.Errorf("%d px: the list says of %s %q, not %q", width, queue, cells, want)
		}
	}
}

// agreeLetters holds every face to how many dead letters there are, and how many of them are parked.
func (n *night) agreeLetters(dead, parked int) {
	n.Helper()
	eventually(n.T, startLimit, "the retries to pass through", func() bool {
		return strings.Contains(n.done(n.T, "GET", "curfew/deadletters/shop", ""), `"queue":"refunds","ready":0,"unacked":7`)
	})
	if text := n.done(n.T, "GET", "curfew/status", ""); !containsAll(text, []string{fmt.Sprintf(`"dead_letters":%d`, dead), fmt.Sprintf(`"parked":%d`, parked)}) {
		n.Errorf("the status has other dead letters than %d: %s", dead, text)
	}
	if text, _ := n.terminal("status"); !strings.Contains(text, fmt.Sprintf("%d dead letters, of these %d parked", dead, parked)) {
		n.Errorf("status has other dead letters than %d:\n%s", dead, text)
	}
	n.browser.open("/dead-letters")
	n.browser.shows(fmt.Sprintf("%d dead letters in all", dead))
	n.browser.shows("not counted: for work")
}

// terminal runs a command in a terminal of 80 columns.
func (n *night) terminal(command string) (text string, code int) {
	n.Helper()
	cmd := exec.Command("script", "-qec", "stty cols 80; exec "+mustBinary(n.T, release)+" "+command+" --url "+n.http+" --color never", "/dev/null")
	cmd.Env = append(environment(nil), "TERM=xterm")
	out, err := cmd.Output()
	if err != nil {
		code = cmd.ProcessState.ExitCode()
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n"), code
}

// agreeStatus asks curfew status.
func (n *night) agreeStatus(verdict string, want []standing) {
	n.Helper()
	text, code := n.terminal("status")
	if wantCode := map[bool]int{true: 0, false: 4}[verdict == "ok"]; code != wantCode || !strings.Contains(text, verdict) {
		n.Errorf("status ends with %d:\n%s", code, text)
	}
	critical, warning := 0, 0
	for _, i := range want {
		if i.Level == "critical" {
			critical++
		} else {
			warning++
		}
	}
	if !strings.Contains(text, fmt.Sprintf("critical %d, warning %d", critical, warning)) {
		n.Errorf("status has other incidents than %v:\n%s", want, text)
	}
	n.says("status", strings.Join(strings.Fields(text), " "), want)
	table, _, _ := strings.Cut(text, "\ncurfew: ")
	for line := range strings.Lines(table) {
		if wide := utf8.RuneCountInString(strings.TrimRight(line, "\n")); wide > 80 {
			n.Errorf("a line of status has %d columns: %s", wide, line)
		}
	}
}

// resize makes it a phone or a screen.
func (b *browser) resize(width int64) {
	b.Helper()
	if width < 500 {
		b.do(chromedp.EmulateViewport(width, 844, chromedp.EmulateMobile))
	} else {
		b.do(chromedp.EmulateViewport(width, 900))
	}
}

// agreePage reads the first page at a width.
func (n *night) agreePage(width int64, verdict string, want []standing) {
	n.Helper()
	b := n.browser
	b.resize(width)
	b.open("/")
	b.until("document.readyState === 'complete' && document.querySelector('[role=status]') !== null")
	text := evaluate[string](b, "document.querySelector('[role=status]').innerText")
	if well := strings.Contains(text, "All is well"); well != (verdict == "ok") {
		n.Errorf("%d px: the page says %q", width, text)
	}
	n.says(fmt.Sprintf("the page of %d px", width), text, want)
	if wide := evaluate[int](b, "document.documentElement.scrollWidth"); wide > int(width) {
		n.Errorf("%d px: the page is %d px wide", width, wide)
	}
}

// nothingElse holds the webhook to a number of notifications in all, or fewer kinds if one had grown tenfold.
func (n *night) nothingElse(most int) {
	n.Helper()
	var told []string
	for _, one := range n.notices() {
		told = append(told, one.what)
	}
	n.Logf("told: %q", told)
	slices.Sort(told)
	if kinds := slices.Compact(told); len(kinds) != most {
		n.Errorf("told %q", kinds)
	}
}
