package integration

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	amqp091 "github.com/rabbitmq/amqp091-go"
	rmq "github.com/rabbitmq/rabbitmq-amqp-go-client/pkg/rabbitmqamqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
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

// TestOnePort: on one port both protocols come with TLS and without, and HTTP, whose connections are not AMQP's. Without the settings
// TLS and HTTP are refused.
func TestOnePort(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ca := testenv.NewAuthority(t)
	cert, key := ca.Write(t, t.TempDir(), pkix.Name{CommonName: "server"})
	c := startCurfew(t, "HTTP_ON_AMQP=true", "MAX_CONNECTIONS=1", "TLS_CERT="+cert, "TLS_KEY="+key)
	_, addr, _ := strings.Cut(c.url, "@")
	trust := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
	held, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer held.Close()
	answers := bufio.NewReader(held)
	ask := func(method, path string) string {
		r, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, nil)
		require.NoError(t, err)
		r.SetBasicAuth("guest", "guest")
		require.NoError(t, r.Write(held))
		answer, err := http.ReadResponse(answers, r)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.Status + " " + string(body)
	}
	assert.Contains(t, ask(http.MethodGet, "/api/whoami"), `"guest"`)
	for _, secure := range []bool{false, true, false, true} {
		scheme, options := "amqp://", amqp.ConnOptions{SASLType: amqp.SASLTypePlain("guest", "guest"), TLSConfig: trust}
		if secure {
			scheme = "amqps://"
		}
		var old *amqp091.Connection
		eventually(t, startLimit, "a connection of AMQP 0-9-1", func() bool {
			old, err = amqp091.DialTLS(scheme+"guest:guest@"+addr, trust)
			return err == nil // the one before may still count
		})
		ch, err := old.Channel()
		require.NoError(t, err)
		_, err = ch.QueueDeclare("q", true, false, false, false, nil)
		require.NoError(t, err)
		eventually(t, startLimit, "the connection in the list", func() bool {
			return strings.Contains(ask(http.MethodGet, "/api/connections"), fmt.Sprintf(`"ssl":%t`, secure))
		})
		require.NoError(t, old.Close())
		eventually(t, startLimit, "a connection of AMQP 1.0", func() bool {
			conn, err := amqp.Dial(ctx, scheme+addr, &options)
			if err != nil {
				return false // the one before still counts
			}
			session, err := conn.NewSession(ctx, nil)
			require.NoError(t, err)
			sender, err := session.NewSender(ctx, "/queues/q", nil)
			require.NoError(t, err)
			require.NoError(t, sender.Send(ctx, amqp.NewMessage(make([]byte, 300<<10)), nil))
			conn.Close() // says EOF when the server hangs up first
			return true
		})
	}
	assert.Contains(t, ask(http.MethodGet, "/api/queues/%2F/q"), `"messages":4`)
	assert.Contains(t, ask(http.MethodDelete, "/api/queues/%2F/q/contents"), "204")
	assert.Contains(t, ask(http.MethodOptions, "/api/whoami"), "200")

	c = startCurfew(t)
	_, addr, _ = strings.Cut(c.url, "@")
	_, err = http.Get("http://" + addr)
	require.Error(t, err)
	_, err = tls.Dial("tcp", addr, trust)
	require.Error(t, err)
	eventually(t, startLimit, "the reasons in the log", func() bool {
		return strings.Contains(c.log.String(), "this is the AMQP port") && strings.Contains(c.log.String(), "there is no certificate")
	})
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
