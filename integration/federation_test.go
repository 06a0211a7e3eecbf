package integration

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// TestFederation has RabbitMQ take messages from Curfew as its upstream, by queue federation and by exchange federation.
func TestFederation(t *testing.T) {
	t.Parallel()
	up := startCurfew(t)
	startRabbitMQ(t)
	down := sharedRabbitMQ
	rabbitMQDefinitions.Lock()
	defer rabbitMQDefinitions.Unlock()
	for path, body := range map[string]string{
		"parameters/federation-upstream/%2F/curfew": fmt.Sprintf(`{"value":{"uri":%q,"reconnect-delay":1}}`, up.url),
		"policies/%2F/federated":                    `{"pattern":"^federated","definition":{"federation-upstream":"curfew"}}`,
	} {
		down.done(t, http.MethodPut, path, body)
		defer down.done(t, http.MethodDelete, path, "")
	}
	from, to := openChannel(t, dial(t, up.url)), openChannel(t, dial(t, down.url))
	check(t, to.Qos(10, 0, false))

	t.Run("queue", func(t *testing.T) {
		_, err := from.QueueDeclare("federated", true, false, false, false, amqp091.Table{"x-remaining-expiration": true})
		check(t, err)
		_, err = to.QueueDeclare("federated", true, false, false, false, nil)
		check(t, err)
		began := time.Now()
		publishFederated(t, from, "")
		left, err := from.QueueDeclarePassive("federated", true, false, false, false, nil) // answered when all are there
		check(t, err)
		if left.Messages != federatedMessages {
			t.Fatalf("%d messages wait", left.Messages)
		}
		const waits = 50 * time.Millisecond
		<-time.After(waits)
		for _, d := range consumeFederated(t, down, to, "federated") {
			left, err := strconv.Atoi(d.Expiration)
			check(t, err)
			is, most, least := time.Duration(left)*time.Millisecond, federatedTTL-waits+time.Millisecond, federatedTTL-time.Since(began)
			if is > most || is < least {
				t.Fatalf("%s is handed on with %v left, not between %v and %v", d.Body, is, least, most)
			}
		}
		if left, err = from.QueueDeclarePassive("federated", true, false, false, false, nil); err != nil || left.Messages > 0 {
			t.Errorf("%d messages are left: %v", left.Messages, err)
		}
	})
	t.Run("exchange", func(t *testing.T) {
		_, err := to.QueueDeclare("bound.downstream", true, false, false, false, nil)
		check(t, err)
		check(t, to.ExchangeDeclare("federated", "direct", true, false, false, false, nil))
		check(t, to.QueueBind("bound.downstream", "federated", "federated", false, nil))
		eventually(t, answerLimit, "the link to bind upstream", func() bool {
			bindings, _ := ask(t, up.http, "/api/exchanges/%2F/federated/bindings/source")
			list, _ := bindings.([]any)
			return len(list) > 0
		})
		publishFederated(t, from, "federated")
		consumeFederated(t, down, to, "bound.downstream")
	})
}

const (
	federatedMessages = 500
	federatedTTL      = 10 * time.Minute
)

func publishFederated(t *testing.T, ch *amqp091.Channel, exchange string) {
	t.Helper()
	for i := range federatedMessages {
		check(t, ch.PublishWithContext(t.Context(), exchange, "federated", false, false, amqp091.Publishing{
			Body: fmt.Append(nil, i), DeliveryMode: amqp091.Persistent, Expiration: strconv.FormatInt(federatedTTL.Milliseconds(), 10)}))
	}
}

// consumeFederated takes what was published, in order, from a queue of the RabbitMQ.
func consumeFederated(t *testing.T, down *rabbitmq, ch *amqp091.Channel, queue string) (all []amqp091.Delivery) {
	t.Helper()
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	check(t, err)
	for i := range federatedMessages {
		select {
		case d := <-deliveries:
			if want := fmt.Sprint(i); string(d.Body) != want {
				t.Fatalf("got %s, not %s", d.Body, want)
			}
			check(t, d.Ack(false))
			all = append(all, d)
		case <-time.After(answerLimit):
			t.Fatalf("message %d did not arrive\nRabbitMQ's log:\n%s", i, down.log.Tail(4000))
		}
	}
	return all
}
