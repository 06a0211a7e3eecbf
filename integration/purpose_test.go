package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

// TestMeantExpiries: what expires in queues for retries and for telemetry is no incident, whether somebody said so or it shows, and not even while
// the consumer of a retry queue's target is away. What expires in a queue for work is one within ten seconds.
func TestMeantExpiries(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	conn := dial(t, c.url)
	ch := openChannel(t, conn)
	declare := func(name string, args amqp091.Table) {
		_, err := ch.QueueDeclare(name, true, false, false, false, args)
		check(t, err)
	}
	to := func(queue string) amqp091.Table {
		return amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
	}
	declare("orders.failed", nil)
	declare("orders", to("orders.failed"))
	declare("orders.retry", to("orders")) // its messages have times to live of their own
	check(t, ch.ExchangeDeclare("again", "fanout", true, false, false, false, nil))
	declare("again", amqp091.Table{"x-dead-letter-exchange": ""}) // one for all: back to the queue that the routing key names
	check(t, ch.QueueBind("again", "", "again", false, nil))
	declare("mails", nil)
	waits := to("mails")
	waits["x-message-ttl"] = 300
	declare("mails.delay", waits)
	declare("readings", amqp091.Table{"x-message-ttl": 300, "x-max-length": 100})
	declare("positions", amqp091.Table{"x-curfew-purpose": "telemetry"})
	worker := openChannel(t, dial(t, c.url))
	for _, name := range []string{"orders", "mails"} {
		_, err := worker.Consume(name, "", true, false, false, false, nil)
		check(t, err)
	}
	publish := func(queues ...string) {
		for _, name := range queues {
			check(t, ch.PublishWithContext(t.Context(), "", name, true, false, amqp091.Publishing{Expiration: "200"}))
		}
	}
	expire := func() {
		for range 10 {
			publish("orders.retry", "mails.delay", "readings", "positions")
			check(t, ch.PublishWithContext(t.Context(), "again", "mails", true, false, amqp091.Publishing{Expiration: "200"}))
			time.Sleep(time.Second)
		}
	}
	expire()
	check(t, worker.Close())
	expire()
	eventually(t, startLimit, "all to have expired", func() bool { return c.metric("curfew_deadlines_fired_total") >= 100 })
	if code, text := runToEnd(t, "status", "URL="+c.http); code != 0 {
		t.Fatalf("status ends with %d:\n%s", code, text)
	}
	attempt := 0
	onceWithin(t, time.Minute, func() error {
		attempt++
		invoices := fmt.Sprint("invoices-", attempt)
		declare(invoices, nil)
		publish(invoices)
		return poll(10*time.Second, func() (bool, error) {
			code, text := runToEnd(t, "status", "URL="+c.http)
			return code == 4 && strings.Contains(text, invoices), nil
		})
	})
}

// TestWorkersThatDoNotReturn: after a kill only those come back who consume the dead letters. What expires in the queues without their workers is an
// incident within ten seconds, also in the queue whose workers have never come. In a delay queue it is none, before anybody has come back.
func TestWorkersThatDoNotReturn(t *testing.T) {
	t.Parallel()
	data := "DATA_DIR=" + t.TempDir()
	first := startCurfew(t, data)
	ch := openChannel(t, dial(t, first.url))
	declare := func(name string, args amqp091.Table) {
		_, err := ch.QueueDeclare(name, true, false, false, false, args)
		check(t, err)
	}
	check(t, ch.ExchangeDeclare("dlx", "fanout", true, false, false, false, nil))
	declare("dead-letters", nil)
	check(t, ch.QueueBind("dead-letters", "", "dlx", false, nil))
	dies := amqp091.Table{"x-message-ttl": 300, "x-dead-letter-exchange": "dlx"}
	for _, name := range []string{"consumed", "polled", "coming"} {
		declare(name, dies)
	}
	declare("mails", nil)
	declare("mails.delay", amqp091.Table{"x-message-ttl": 300, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "mails"})
	for _, name := range []string{"consumed", "mails", "dead-letters"} {
		_, err := ch.Consume(name, "", true, false, false, false, nil)
		check(t, err)
	}
	check(t, ch.Confirm(false))
	publish := func(queue string) {
		sent, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", queue, true, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent})
		check(t, err)
		sent.Wait()
	}
	publish("polled")
	eventually(t, answerLimit, "a message to be got", func() bool {
		_, got, err := ch.Get("polled", true)
		check(t, err)
		if !got {
			publish("polled")
		}
		return got
	})
	publish("mails.delay") // with it, what is known of the queues is on the disk
	first.kill()

	second := startCurfew(t, data)
	ch = openChannel(t, dial(t, second.url))
	check(t, ch.Confirm(false))
	_, err := ch.Consume("dead-letters", "", true, false, false, false, nil)
	check(t, err)
	publish("mails.delay")
	eventually(t, answerLimit, "the delays to be over", func() bool { return readyCount(t, second.url, "mails") > 0 })
	if code, text := runToEnd(t, "status", "URL="+second.http); code != 0 {
		t.Fatalf("status ends with %d:\n%s", code, text)
	}
	for _, name := range []string{"consumed", "polled", "coming"} {
		publish(name)
	}
	eventually(t, startLimit, "what was lost in all three", func() bool {
		code, text := runToEnd(t, "status", "URL="+second.http)
		return code == 4 && strings.Contains(strings.Join(strings.Fields(text), " "), "and 2 queues more, 3 in all")
	})
}
