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
