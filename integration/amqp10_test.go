package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	rmq "github.com/rabbitmq/rabbitmq-amqp-go-client/pkg/rabbitmqamqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRabbitMQsGoClient runs RabbitMQ's own Go client for AMQP 1.0: it declares over the connection, publishes, consumes and deletes.
func TestRabbitMQsGoClient(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	env := rmq.NewEnvironment(startCurfew(t).url, nil)
	c, err := env.NewConnection(ctx)
	require.NoError(t, err)
	m := c.Management()
	_, err = m.DeclareExchange(ctx, &rmq.TopicExchangeSpecification{Name: "orders"})
	require.NoError(t, err)
	dead, err := m.DeclareQueue(ctx, &rmq.ClassicQueueSpecification{Name: "dead"})
	require.NoError(t, err)
	assert.Equal(t, rmq.Classic, dead.Type())
	spec := &rmq.QuorumQueueSpecification{Name: "my orders", MessageTTL: 60_000, DeadLetterExchange: "", Arguments: map[string]any{
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead",
	}}
	info, err := m.DeclareQueue(ctx, spec)
	require.NoError(t, err)
	assert.Equal(t, []any{"my orders", rmq.Quorum, true}, []any{info.Name(), info.Type(), info.IsDurable()})
	_, err = m.DeclareQueue(ctx, &rmq.ClassicQueueSpecification{Name: "my orders"})
	require.ErrorIs(t, err, rmq.ErrPreconditionFailed)
	_, err = m.QueueInfo(ctx, "none")
	require.ErrorIs(t, err, rmq.ErrDoesNotExist)
	bound, err := m.Bind(ctx, &rmq.ExchangeToQueueBindingSpecification{SourceExchange: "orders", DestinationQueue: "my orders", BindingKey: "new.#"})
	require.NoError(t, err)

	publisher, err := c.NewPublisher(ctx, &rmq.ExchangeAddress{Exchange: "orders", Key: "new.1"}, nil)
	require.NoError(t, err)
	publish := func(body string, want any) {
		m := rmq.NewMessage([]byte(body))
		m.Header = &amqp.MessageHeader{Durable: true, Priority: 4}
		result, err := publisher.Publish(ctx, m)
		require.NoError(t, err)
		assert.IsType(t, want, result.Outcome, body)
	}
	for _, body := range []string{"first", "second", "third"} {
		publish(body, &rmq.StateAccepted{})
	}
	info, err = m.QueueInfo(ctx, "my orders")
	require.NoError(t, err)
	assert.EqualValues(t, 3, info.MessageCount())

	consumer, err := c.NewConsumer(ctx, "my orders", nil)
	require.NoError(t, err)
	next := func() rmq.IDeliveryContext {
		d, err := consumer.Receive(ctx)
		require.NoError(t, err)
		return d
	}
	d := next()
	assert.Equal(t, "first", string(d.Message().GetData()))
	require.NoError(t, d.Accept(ctx))
	require.NoError(t, next().Discard(ctx, nil))
	require.NoError(t, next().Requeue(ctx))
	d = next()
	assert.Equal(t, "third", string(d.Message().GetData()))
	for _, tries := range []int64{1, 2} {
		require.NoError(t, d.RequeueWithAnnotations(ctx, amqp.Annotations{"x-opt-tries": tries, "x-opt-by": "me", "x-delay": int64(60_000)}))
		d = next()
		assert.Equal(t, "third", string(d.Message().GetData()))
		assert.Equal(t, tries, d.Message().Annotations["x-opt-tries"])
		assert.Equal(t, "me", d.Message().Annotations["x-opt-by"])
		assert.NotContains(t, d.Message().Annotations, "x-delay", "the broker would obey it")
	}
	require.NoError(t, d.Accept(ctx))
	require.NoError(t, consumer.Close(ctx))
	eventually(t, startLimit, "the dead letter", func() bool {
		info, err := m.QueueInfo(ctx, "dead")
		return err == nil && info.MessageCount() == 1
	})
	purged, err := m.PurgeQueue(ctx, "dead")
	require.NoError(t, err)
	assert.Equal(t, 1, purged)

	require.NoError(t, m.Unbind(ctx, bound))
	publish("nowhere", &rmq.StateReleased{})
	require.NoError(t, m.DeleteExchange(ctx, "orders"))
	require.NoError(t, m.DeleteQueue(ctx, "my orders"))
	_, err = m.QueueInfo(ctx, "my orders")
	require.ErrorIs(t, err, rmq.ErrDoesNotExist)
	require.NoError(t, env.CloseConnections(ctx))
}

// TestOutcomesOverAMQP10: what rhea and qpid-proton say of a message, and what they are told.
func TestOutcomesOverAMQP10(t *testing.T) {
	for name, clientOf := range map[string]func(testing.TB) client{"rhea": rheaClient, "qpid-proton": protonClient} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c, url := clientOf(t).(script), startCurfew(t, "DATA_DIR="+dir).url
			c.declare(t, url, topology{queue: "orders", dlx: "orders.dlx", dlq: "orders.dead"})
			var got []string
			for _, words := range c.run(t, nil, "outcomes", url, "orders", "orders.dead") {
				got = append(got, strings.Join(words, " "))
			}
			assert.ElementsMatch(t, []string{
				"a accepted", "b accepted", "c accepted", "d accepted",
				"got a 0", "got b 0", "got c 0", "got c 0", "got c 1", // released, then modified as failed
				"dead b rejected", "dead c rejected", "dead d expired",
				"unroutable released", "missing amqp:not-found", "password refused",
			}, got)
			eventually(t, startLimit, "the expiry in the audit", func() bool { return auditedIn(t, dir) == 1 })
		})
	}
}
