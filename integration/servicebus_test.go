package integration

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker"
	"curfew/broker/policy"
)

// statement is one of Service Bus's page "Message expiration (Time to Live)", in other words, as of December 2024.
type statement struct {
	at     string           // paragraph, notes and lists among them, and statement in it
	says   string           // Service Bus
	curfew string           // as it says, unless this says what is different
	check  func(*pageBench) // nil: advice or a remark, which no program can follow
}

var expirationPage = []statement{
	{at: "1.1", says: "what a message carries is mostly good until some deadline only", check: (*pageBench).expiresAtItsDeadline},
	{at: "1.2", says: "after it, the content is delivered to nobody", check: func(p *pageBench) {
		p.queue("q", amqp091.Table{"x-message-ttl": 1000})
		deliveries := p.hold("q", 1) // a consumer whose hands are full
		p.publish("q", "first", "")
		p.publish("q", "late", "")
		first := p.next(deliveries)
		p.advance(time.Second)
		check(p.t, first.Ack(false))
		p.advance(time.Second)
		p.nothing(deliveries)
	}},
	{at: "2.1", says: "messages that a test left behind go by themselves, so that the next one starts clean", check: func(p *pageBench) {
		p.queue("q", amqp091.Table{"x-message-ttl": 1000})
		for i := range 100 {
			p.publish("q", fmt.Sprint(i), "")
		}
		p.advance(time.Second)
		p.counts("q", 0)
	}},
	{at: "3.1", says: "a message's time to live is a property of it, relative", check: (*pageBench).expiresAtItsDeadline},
	{at: "3.2", says: "it becomes an instant when the message is enqueued", check: func(p *pageBench) {
		p.queue("q", nil)
		p.publish("q", "m", "60000")
		p.advance(10 * time.Second)
		p.deadlineIn("q", 50*time.Second)
	}},
	{at: "3.3", says: "which is that of enqueueing plus the time to live", check: func(p *pageBench) {
		p.queue("q", nil)
		p.publish("q", "m", "60000")
		p.deadlineIn("q", time.Minute)
	}},
	{at: "3.4", says: "it is not enforced while nobody listens", curfew: "is enforced all the same", check: (*pageBench).expiresAtItsDeadline},
	{at: "4.1", says: "what has expired may stay for a while", curfew: "goes at its deadline", check: (*pageBench).expiresAtItsDeadline},
	{at: "4.2", says: "that depends on whether the queue is in use", curfew: "in use or not, and wherever in the queue it stands", check: func(p *pageBench) {
		p.queue("q", nil)
		p.publish("q", "head", "3600000")
		p.publish("q", "middle", "1000")
		p.publish("q", "tail", "")
		p.advance(time.Second)
		p.shows("q", "head", "tail")
	}},
	{at: "4.3", says: "so counts may be too high", curfew: "they are right", check: (*pageBench).expiresAtItsDeadline},
	{at: "4.4", says: "and a peek may show what has expired", curfew: "shows it only if a consumer holds it, as expired", check: func(p *pageBench) {
		p.queue("q", nil)
		p.publish("q", "held", "1000")
		p.publish("q", "waits", "1000")
		p.get("q")
		p.advance(time.Second)
		if shown := p.shows("q", "held"); !shown[0].Expired {
			p.t.Errorf("held is not shown as expired")
		}
	}},
	{at: "4.5", says: "but it is never received", check: (*pageBench).expiresAtItsDeadline},
	{at: "5.1", says: "from that instant on it cannot be had", check: func(p *pageBench) {
		p.queue("q", nil)
		p.publish("q", "m", "1000")
		p.advance(time.Second - time.Microsecond)
		held := p.get("q")
		check(p.t, held.Nack(false, true))
		p.counts("q", 1)
		p.advance(time.Microsecond)
		p.empty("q")
	}},
	{at: "5.2", says: "what is locked for delivery is left alone", check: func(p *pageBench) {
		p.deadLettering("q", nil)
		p.publish("q", "m", "1000")
		p.get("q")
		p.advance(time.Hour)
		p.shows("q", "m")
		p.empty(p.deadQueue("q"))
	}},
	{at: "5.3", says: "and handled as ever", check: (*pageBench).settledLate},
	{at: "5.4", says: "when its lock ends, or it is abandoned, it expires at once", check: func(p *pageBench) {
		p.queue("q", amqp091.Table{"x-lock-duration": 10_000})
		p.publish("q", "abandoned", "1000")
		abandoned := p.get("q")
		p.advance(2 * time.Second)
		check(p.t, abandoned.Nack(false, true))
		p.counts("q", 0)
		p.publish("q", "locked", "1000")
		p.get("q")
		p.advance(9 * time.Second)
		p.shows("q", "locked")
		p.advance(time.Second)
		p.shows("q")
	}},
	{at: "5.5", says: "an application may hold a message that has expired meanwhile", check: (*pageBench).settledLate},
	{at: "5.6", says: "it may go on with it or give it up", check: func(p *pageBench) {
		p.settledLate()
		p.abandonedLate()
	}},
	{at: "6.1", says: "with a time to live of ms, messages may expire before anybody has them", check: func(p *pageBench) {
		p.queue("q", nil)
		p.publish("q", "m", "1")
		p.advance(time.Millisecond)
		p.empty("q")
	}},
	{at: "6.2", says: "so take the longest that will do"},
	{at: "7.1", says: "a scheduled message names when it is to be enqueued", check: func(p *pageBench) {
		p.queue("q", nil)
		p.schedule("q", 5*time.Minute, "")
		p.advance(5*time.Minute - time.Millisecond)
		p.empty("q")
		p.advance(time.Millisecond)
		p.counts("q", 1)
	}},
	{at: "7.2", says: "its time to live counts from then", check: (*pageBench).scheduled},
	{at: "7.3", says: "scheduled in 5 minutes with 10 to live, it expires after 15", check: (*pageBench).scheduled},
	{at: "8.1", says: "if only the queue sets a time to live, a peek does not say when a message expires", curfew: "says it", check: func(p *pageBench) {
		p.queue("q", amqp091.Table{"x-message-ttl": 60_000})
		p.publish("q", "m", "")
		p.deadlineIn("q", time.Minute)
	}},
	{at: "8.2", says: "a receive does, since it is found out then", curfew: "is known from the start, see 8.1"},
	{at: "9.1", says: "a queue and a topic hold all messages sent to them to a default", check: func(p *pageBench) {
		p.topic("t", amqp091.Table{"x-message-ttl": 2000}, "q", nil)
		p.publishTo("t", "by topic", "")
		p.queue("r", amqp091.Table{"x-message-ttl": 1000})
		p.publish("r", "by queue", "")
		p.deadlineIn("q", 2*time.Second)
		p.deadlineIn("r", time.Second)
	}},
	{at: "9.2", says: "which is set when they are made, and may be changed", curfew: "is changed by a policy, for what comes then", check: func(p *pageBench) {
		p.queue("q", nil)
		p.publish("q", "before", "")
		p.policy(policy.Definition{"message-ttl": int64(1000)})
		p.publish("q", "then", "")
		p.policy(policy.Definition{"message-ttl": int64(5000)})
		p.publish("q", "after", "")
		p.advance(time.Second)
		p.shows("q", "before", "after")
		p.advance(4 * time.Second)
		p.shows("q", "before")
	}},
	{at: "9.3", says: "it counts for messages that say nothing", check: func(p *pageBench) {
		p.queue("q", amqp091.Table{"x-message-ttl": 1000})
		p.publish("q", "m", "")
		p.deadlineIn("q", time.Second)
	}},
	{at: "9.4", says: "and is the most that others may have", check: (*pageBench).ceiling},
	{at: "9.5", says: "whose longer ones become it without a word", curfew: "the property stays as it was sent", check: (*pageBench).ceiling},
	{at: "10.1", says: "a message without a time to live has the longest there is", curfew: "has none", check: (*pageBench).forever},
	{at: "10.2", says: "so has a queue or topic", curfew: "has none", check: (*pageBench).forever},
	{at: "10.3", says: "of the basic tier it is 14 days, which is the most", curfew: "there are no tiers: ten years is the most, more is refused", check: func(p *pageBench) {
		p.refused("q", amqp091.Table{"x-message-ttl": int64(policy.MaxTTLMillis + 1)}, "value_too_large")
		p.queue("q", amqp091.Table{"x-message-ttl": int64(policy.MaxTTLMillis)})
		p.publish("q", "m", "")
		p.deadlineIn("q", policy.MaxTTLMillis*time.Millisecond)
	}},
	{at: "10.4", says: "a topic's counts where it is less than the subscription's", check: func(p *pageBench) {
		p.topic("t", amqp091.Table{"x-message-ttl": 1000}, "q", amqp091.Table{"x-message-ttl": 2000})
		p.publishTo("t", "m", "3000")
		p.deadlineIn("q", time.Second)
	}},
	{at: "11.1", says: "what expired can go to a dead-letter queue", check: func(p *pageBench) {
		p.deadLettering("q", nil)
		p.publish("q", "m", "1000")
		p.advance(time.Second)
		p.shows(p.deadQueue("q"), "m")
	}},
	{at: "11.2", says: "that can be asked for by program or portal", curfew: "by argument or policy", check: func(p *pageBench) {
		p.queue("q", nil)
		p.queue("dead", nil)
		p.policy(policy.Definition{"dead-letter-exchange": "", "dead-letter-routing-key": "dead"})
		p.publish("q", "m", "1000")
		p.advance(time.Second)
		p.shows("dead", "m")
	}},
	{at: "11.3", says: "if it is not, what expired is dropped", check: (*pageBench).expiresAtItsDeadline},
	{at: "11.4", says: "the dead-letter reason tells it from other dead letters", check: func(p *pageBench) {
		p.deadLettering("q", nil)
		p.publish("q", "expires", "1000")
		p.advance(time.Second)
		p.publish("q", "rejected", "")
		rejected := p.get("q")
		check(p.t, rejected.Reject(false))
		p.advance(time.Millisecond)
		first, second := p.get(p.deadQueue("q")), p.get(p.deadQueue("q"))
		p.same("the reasons", fmt.Sprint(first.Headers["DeadLetterReason"], " ", second.Headers["DeadLetterReason"]), "TTLExpiredException Rejected")
	}},
	{at: "12.1", says: "what was locked at its deadline goes to the dead-letter queue when it is abandoned, or its lock ends", check: func(p *pageBench) {
		p.abandonedLate()
		p.deadLettering("locked", amqp091.Table{"x-lock-duration": 10_000})
		p.publish("locked", "m", "1000")
		p.get("locked")
		p.advance(10 * time.Second)
		p.shows(p.deadQueue("locked"), "m")
	}},
	{at: "12.2", says: "but not if it is settled", check: (*pageBench).settledLate},
	{at: "12.3", says: "then the application has handled it, though late", check: (*pageBench).settledLate},
	{at: "13.1", says: "dead-lettering is a transaction, so one can rely on hearing of a job that nobody took in time", check: func(p *pageBench) {
		p.deadLettering("q", nil)
		for i := range 100 {
			p.publish("q", fmt.Sprint(i), fmt.Sprint(1+10*i))
		}
		for range 100 {
			p.advance(10 * time.Millisecond)
			if n := len(p.peek("q")) + len(p.peek(p.deadQueue("q"))); n != 100 {
				p.t.Fatalf("%d messages of 100", n)
			}
		}
	}},
	{at: "14.1", says: "for example a site hands jobs to a few workers, and has an answer from each in a reply queue", check: func(p *pageBench) {
		p.queue("replies", nil)
		p.deadLettering("q", nil)
		p.publish("q", "job", "1000")
		job := p.get("q")
		p.publish("replies", "done: "+string(job.Body), "")
		check(p.t, job.Ack(false))
		p.advance(time.Hour)
		p.shows("replies", "done: job")
		p.shows(p.deadQueue("q"))
	}},
	{at: "14.2", says: "when there are too many, those that expired come back by the dead-letter queue", check: (*pageBench).tooManyJobs},
	{at: "14.3", says: "so the user can be told, and the job put into another queue", check: (*pageBench).tooManyJobs},
	{at: "15.1", says: "queues can be temporary: unused for some time, they are deleted", check: func(p *pageBench) {
		p.temporary()
		p.advance(idlePeriod + time.Second)
		p.there(false)
	}},
	{at: "15.2", says: "topics can be, too", check: func(p *pageBench) {
		p.topic("t", amqp091.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()}, "s", nil)
		p.topicThere(true)
		p.advance(idlePeriod + time.Second)
		p.topicThere(false)
		p.counts("s", 0)
	}},
	{at: "16.1", says: "that is good for tests that were broken off, and for queues of replies"},
	{at: "17.1", says: "a property turns it on, and says for how long a queue has to be idle", check: func(p *pageBench) {
		p.temporary()
		p.queue("other", nil)
		p.advance(idlePeriod - time.Second)
		p.there(true)
		p.advance(2 * time.Second)
		p.there(false)
		p.counts("other", 0)
	}},
	{at: "17.2", says: "five minutes at least", check: func(p *pageBench) {
		p.refused("q", amqp091.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds() - 1}, "x-auto-delete-on-idle")
	}},
	{at: "18.1", says: "a lock of the resource against deletion does not protect from it", curfew: "there are no such locks"},
	{at: "18.2", says: "the longest duration does", curfew: "so does none", check: func(p *pageBench) {
		p.queue("q", nil)
		p.advance(time.Hour)
		p.counts("q", 0)
	}},
	{at: "19.1", says: "a queue is idle without sends", check: func(p *pageBench) {
		p.keptBy(func() { p.publish("q", "m", "") })
	}},
	{at: "19.2", says: "without receives", check: func(p *pageBench) {
		p.keptBy(func() { p.empty("q") })
	}},
	{at: "19.3", says: "without updates of the queue", check: func(p *pageBench) {
		p.keptBy(func() { p.policy(policy.Definition{"max-length": time.Now().Unix()}) })
	}},
	{at: "19.4", says: "without scheduled messages", check: func(p *pageBench) {
		p.temporary()
		p.schedule("q", 10*idlePeriod, "")
		p.advance(9 * idlePeriod)
		p.there(true)
	}},
	{at: "19.5", says: "and without a browse", check: func(p *pageBench) {
		p.keptBy(func() { p.peek("q") })
	}},
	{at: "19.6", says: "a topic is idle without sends", check: func(p *pageBench) {
		p.topicKeptBy(func() { p.publishTo("t", "m", "") })
	}},
	{at: "19.7", says: "and without operations on its subscriptions", check: func(p *pageBench) {
		p.topicKeptBy(func() { p.empty("s") })
	}},
	{at: "20.1", says: "auto-forwarding from a queue counts as receiving", curfew: "does not exist: a request for it is refused", check: func(p *pageBench) {
		p.refused("q", amqp091.Table{"x-forward-to": "other"}, "auto-forwarding is not supported")
	}},
}

// TestExpirationPage holds each statement to what Curfew does, in virtual time and with the monitor on.
func TestExpirationPage(t *testing.T) {
	for _, s := range expirationPage {
		if s.check == nil {
			continue
		}
		name := s.at + " " + s.says
		if s.curfew != "" {
			name += " (Curfew: " + s.curfew + ")"
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := startVirtual(t)
				defer v.stop()
				p := &pageBench{t: t, v: v, conn: v.dial()}
				defer p.conn.Close()
				p.ch = openChannel(t, p.conn)
				check(t, p.ch.Confirm(false))
				s.check(p)
			})
		})
	}
}

const idlePeriod = 5 * time.Minute

// pageBench is a Curfew with one client, for one statement.
type pageBench struct {
	t    *testing.T
	v    *virtual
	conn *amqp091.Connection
	ch   *amqp091.Channel
}

func (p *pageBench) expiresAtItsDeadline() {
	p.queue("q", nil)
	p.publish("q", "m", "1000")
	p.advance(time.Second - time.Microsecond)
	p.counts("q", 1)
	p.advance(time.Microsecond)
	p.counts("q", 0)
	p.shows("q")
	p.empty("q")
}

func (p *pageBench) settledLate() {
	p.deadLettering("settled", nil)
	p.publish("settled", "m", "1000")
	held := p.get("settled")
	p.advance(time.Hour)
	check(p.t, held.Ack(false))
	p.advance(time.Hour)
	p.shows("settled")
	p.shows(p.deadQueue("settled"))
}

func (p *pageBench) abandonedLate() {
	p.deadLettering("abandoned", nil)
	p.publish("abandoned", "m", "1000")
	held := p.get("abandoned")
	p.advance(time.Hour)
	p.shows("abandoned", "m")
	check(p.t, held.Nack(false, true))
	p.advance(0)
	p.shows("abandoned")
	p.shows(p.deadQueue("abandoned"), "m")
}

func (p *pageBench) scheduled() {
	p.queue("q", nil)
	p.schedule("q", 5*time.Minute, "600000")
	p.advance(15*time.Minute - time.Millisecond)
	p.counts("q", 1)
	p.advance(time.Millisecond)
	p.counts("q", 0)
}

func (p *pageBench) ceiling() {
	p.queue("q", amqp091.Table{"x-message-ttl": 1000})
	p.publish("q", "m", "2000")
	p.deadlineIn("q", time.Second)
	p.same("the property", p.get("q").Expiration, "2000")
}

func (p *pageBench) forever() {
	p.topic("t", nil, "q", nil)
	p.publishTo("t", "m", "")
	p.advance(time.Hour)
	p.same("the deadline", fmt.Sprint(int64(p.shows("q", "m")[0].Deadline)), "0")
}

func (p *pageBench) tooManyJobs() {
	p.deadLettering("q", nil)
	p.queue("slow", nil)
	for _, job := range []string{"a", "b", "c"} {
		p.publish("q", job, "1000")
	}
	check(p.t, p.get("q").Ack(false))
	p.advance(time.Second)
	for range 2 {
		late := p.get(p.deadQueue("q"))
		p.publish("slow", string(late.Body), "")
		check(p.t, late.Ack(false))
	}
	p.advance(time.Hour)
	p.shows("slow", "b", "c")
}

func (p *pageBench) temporary() {
	p.queue("q", amqp091.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()})
}

// keptBy: what is done every four minutes keeps the queue, and without it the queue goes.
func (p *pageBench) keptBy(use func()) {
	p.temporary()
	for range 5 {
		p.advance(4 * time.Minute)
		p.there(true)
		use()
	}
	p.advance(idlePeriod + time.Second)
	p.there(false)
}

// advance lets time pass, and what it brings happen.
// topicKeptBy uses a topic, t, with a subscription, s, again and again, and lets it be idle then.
func (p *pageBench) topicKeptBy(use func()) {
	p.topic("t", amqp091.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()}, "s", nil)
	for range 5 {
		p.advance(4 * time.Minute)
		p.topicThere(true)
		use()
	}
	p.advance(idlePeriod + time.Second)
	p.topicThere(false)
}

func (p *pageBench) topicThere(want bool) {
	p.t.Helper()
	if _, err := p.vhost().Exchanges.Get("t"); (err == nil) != want {
		p.t.Fatalf("the topic is there: %v", !want)
	}
}

func (p *pageBench) advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (p *pageBench) queue(name string, args amqp091.Table) {
	p.t.Helper()
	_, err := p.ch.QueueDeclare(name, false, false, false, false, args)
	check(p.t, err)
}

// deadLettering declares a queue with a dead-letter queue as Service Bus has it.
func (p *pageBench) deadLettering(name string, args amqp091.Table) {
	p.t.Helper()
	p.queue(name, with(args, amqp091.Table{"x-dead-letter-queue": true}))
}

func (p *pageBench) deadQueue(name string) string { return name + "/$deadletterqueue" }

// topic declares an exchange, and a queue that gets all that it is sent.
func (p *pageBench) topic(name string, args amqp091.Table, subscription string, its amqp091.Table) {
	p.t.Helper()
	check(p.t, p.ch.ExchangeDeclare(name, "topic", false, false, false, false, args))
	p.queue(subscription, its)
	check(p.t, p.ch.QueueBind(subscription, "#", name, false, nil))
}

func (p *pageBench) refused(queue string, args amqp091.Table, why string) {
	p.t.Helper()
	ch := openChannel(p.t, p.conn)
	_, err := ch.QueueDeclare(queue, false, false, false, false, args)
	if err == nil || !strings.Contains(err.Error(), why) {
		p.t.Errorf("declared with %v: %v", args, err)
	}
}

func (p *pageBench) policy(d policy.Definition) {
	p.t.Helper()
	_, err := p.vhost().Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: "^q$", Definition: d})
	check(p.t, err)
}

func (p *pageBench) publish(queue, body, expiration string) {
	p.t.Helper()
	p.send("", queue, amqp091.Publishing{Body: []byte(body), Expiration: expiration})
}

func (p *pageBench) publishTo(topic, body, expiration string) {
	p.t.Helper()
	p.send(topic, "k", amqp091.Publishing{Body: []byte(body), Expiration: expiration})
}

func (p *pageBench) schedule(queue string, in time.Duration, expiration string) {
	p.t.Helper()
	headers := amqp091.Table{"x-scheduled-enqueue-time": time.Now().Add(in).UnixMilli()}
	p.send("", queue, amqp091.Publishing{Body: []byte("m"), Expiration: expiration, Headers: headers})
}

// send publishes and waits for the confirm, so that the message is enqueued now.
func (p *pageBench) send(exchange, key string, m amqp091.Publishing) {
	p.t.Helper()
	confirmed, err := p.ch.PublishWithDeferredConfirm(exchange, key, false, false, m)
	check(p.t, err)
	if !confirmed.Wait() {
		p.t.Fatal("the message was not taken")
	}
}

// hold starts a consumer that is given that many messages before it settles one.
func (p *pageBench) hold(queue string, prefetch int) <-chan amqp091.Delivery {
	p.t.Helper()
	check(p.t, p.ch.Qos(prefetch, 0, false))
	deliveries, err := p.ch.Consume(queue, "", false, false, false, false, nil)
	check(p.t, err)
	return deliveries
}

func (p *pageBench) next(deliveries <-chan amqp091.Delivery) amqp091.Delivery {
	p.t.Helper()
	select {
	case d := <-deliveries:
		return d
	case <-time.After(time.Minute):
		p.t.Fatal("nothing is delivered")
	}
	panic("unreachable")
}

func (p *pageBench) nothing(deliveries <-chan amqp091.Delivery) {
	p.t.Helper()
	select {
	case d := <-deliveries:
		p.t.Errorf("%s is delivered", d.Body)
	default:
	}
}

func (p *pageBench) get(queue string) amqp091.Delivery {
	p.t.Helper()
	d, ok, err := p.ch.Get(queue, false)
	check(p.t, err)
	if !ok {
		p.t.Fatalf("nothing in %s", queue)
	}
	return d
}

func (p *pageBench) empty(queue string) {
	p.t.Helper()
	d, ok, err := p.ch.Get(queue, true)
	check(p.t, err)
	if ok {
		p.t.Errorf("%s is in %s", d.Body, queue)
	}
}

func (p *pageBench) counts(queue string, ready int) {
	p.t.Helper()
	got, _, _ := p.find(queue).Messages.Counts()
	p.same("messages in "+queue, fmt.Sprint(got), fmt.Sprint(ready))
}

// vhost is the virtual host when all that was sent has been done: the protocol does not answer a settlement.
func (p *pageBench) vhost() *broker.VHost {
	synctest.Wait()
	vh, _ := p.v.broker.VHost("/")
	return vh
}

func (p *pageBench) find(queue string) *broker.Queue {
	p.t.Helper()
	q, err := p.vhost().Queues.Get(queue)
	check(p.t, err)
	return q
}

func (p *pageBench) there(want bool) {
	p.t.Helper()
	if _, err := p.vhost().Queues.Get("q"); (err == nil) != want {
		p.t.Fatalf("the queue is there: %v", !want)
	}
}

func (p *pageBench) peek(queue string) []broker.Browsed {
	p.t.Helper()
	found, err := p.find(queue).Messages.Browse(broker.Browse{Count: 1000, BodyBytes: 1000})
	check(p.t, err)
	return found
}

// shows is a peek at bodies.
func (p *pageBench) shows(queue string, bodies ...string) []broker.Browsed {
	p.t.Helper()
	found := p.peek(queue)
	var got []string
	for i := range found {
		got = append(got, string(found[i].Message.Body))
	}
	p.same("messages in "+queue, strings.Join(got, " "), strings.Join(bodies, " "))
	return found
}

// deadlineIn holds the deadline that a peek at the queue's only message shows.
func (p *pageBench) deadlineIn(queue string, want time.Duration) {
	p.t.Helper()
	found := p.peek(queue)
	if len(found) != 1 {
		p.t.Fatalf("%d messages in %s", len(found), queue)
	}
	p.same("the deadline", found[0].Deadline.Sub(p.v.broker.Now()).String(), want.String())
}

func (p *pageBench) same(what, got, want string) {
	p.t.Helper()
	if got != want {
		p.t.Fatalf("%s: %s, not %s", what, got, want)
	}
}
