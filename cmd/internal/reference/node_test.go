package reference

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"curfew/cmd/internal/node"
	"curfew/cmd/internal/settings"
	"curfew/integration/testenv"
)

// running is a node in this process, with all parts that report metrics. Redis, the collector and RabbitMQ are not there.
type running struct {
	t              *testing.T
	amqp, web, ops string // addresses
	metrics        *prometheus.Registry
	broker         bool
	channel        *amqp091.Channel
	token          string // of a lock
}

const nobody = "127.0.0.1:1"

func startNode(t *testing.T, withRabbitMQ bool) *running {
	r := &running{t: t, amqp: testenv.FreeAddr(), web: testenv.FreeAddr(), ops: testenv.FreeAddr(), metrics: prometheus.NewRegistry(), broker: !withRabbitMQ}
	alerts := filepath.Join(t.TempDir(), "alerts.yaml")
	require.NoError(t, os.WriteFile(alerts, []byte("deadManSwitch: {url: http://"+nobody+"/}\nsinks: {hook: {url: webhook+http://"+nobody+"/}}\n"), 0o600))
	variables := []string{
		"CURFEW_AMQP_ADDR=" + r.amqp, "CURFEW_HTTP_ADDR=" + r.web, "CURFEW_OPS_ADDR=" + r.ops, "CURFEW_DATA_DIR=" + t.TempDir(), "CURFEW_INSTANCE=reference",
		"CURFEW_ALERTS=" + alerts, "CURFEW_REDIS_URL=redis://" + nobody, "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + nobody, "OTEL_EXPORTER_OTLP_TIMEOUT=100",
	}
	if withRabbitMQ {
		variables = append(variables, "CURFEW_PRIMARY_URL=amqp://guest:guest@"+nobody+"/", "CURFEW_WATCH=keep:*")
	}
	testenv.Setenv(t, variables...)
	s, err := settings.Load()
	require.NoError(t, err)
	require.NoError(t, s.CheckServe())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- node.Serve(ctx, node.Options{Settings: &s, Build: node.Build{Version: "devel"}, Metrics: r.metrics, Log: zap.NewNop()}, io.Discard)
	}()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
	})
	require.Eventually(t, func() bool {
		answer, err := http.Get("http://" + r.ops + "/readyz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}, time.Minute, 10*time.Millisecond)
	return r
}

// get returns what is at a path of the ops endpoints.
func (r *running) get(path string) string {
	answer, err := http.Get("http://" + r.ops + path)
	require.NoError(r.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(r.t, err)
	require.Equal(r.t, http.StatusOK, answer.StatusCode, string(text))
	return string(text)
}

// fill declares queues, has messages die, leaves some in each state, and connects clients that hold messages.
func (r *running) fill() {
	conn, err := amqp091.Dial("amqp://guest:guest@" + r.amqp + "/")
	require.NoError(r.t, err)
	r.t.Cleanup(func() { conn.Close() })
	r.channel, err = conn.Channel()
	require.NoError(r.t, err)
	require.NoError(r.t, r.channel.Confirm(false))
	for name, arguments := range map[string]amqp091.Table{
		"orders": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dead"}, "orders.dead": nil,
		"locked": {"x-lock-duration": int64(3_600_000), "x-delivery-deadline": true}, "held": nil,
		"retried": {"x-queue-type": "quorum", "x-delayed-retry-type": "all", "x-delayed-retry-min": int64(3_600_000)},
	} {
		_, err := r.channel.QueueDeclare(name, true, false, false, false, arguments)
		require.NoError(r.t, err)
	}
	for _, body := range []string{`{"customer": 7}`, "plain", "\xff"} {
		r.publish("orders", amqp091.Publishing{Expiration: "1", MessageId: "m", ContentType: "text/plain", Body: []byte(body), Headers: amqp091.Table{"n": int64(1)}})
	}
	for range 2 {
		r.publish("orders", amqp091.Publishing{Expiration: "3600000", Body: []byte("later")})
	}
	r.publish("orders", amqp091.Publishing{Headers: amqp091.Table{"x-delay": int64(3_600_000)}, Body: []byte("delayed")})
	for _, id := range []string{"mine", "due"} {
		r.publish("orders", amqp091.Publishing{MessageId: id, Headers: amqp091.Table{"x-delay": int64(3_600_000)}})
	}
	r.publish("locked", amqp091.Publishing{Body: []byte("locked")})
	r.publish("held", amqp091.Publishing{Body: []byte("held")})
	locked, ok, err := r.channel.Get("locked", false)
	require.NoError(r.t, err)
	require.True(r.t, ok)
	r.token = locked.Headers["x-lock-token"].(string)
	for range 2 {
		r.publish("retried", amqp091.Publishing{Body: []byte("retried")})
		failed, _, err := r.channel.Get("retried", false)
		require.NoError(r.t, err)
		require.NoError(r.t, failed.Nack(false, true))
	}
	held, err := r.channel.Consume("held", "holder", false, false, false, false, nil)
	require.NoError(r.t, err)
	<-held
	require.Eventually(r.t, func() bool {
		n, err := r.channel.QueueDeclarePassive("orders.dead", true, false, false, false, nil)
		return err == nil && n.Messages == 3
	}, time.Minute, 10*time.Millisecond)
}

func (r *running) publish(key string, m amqp091.Publishing) {
	m.DeliveryMode = amqp091.Persistent
	confirmed, err := r.channel.PublishWithDeferredConfirm("", key, false, false, m)
	require.NoError(r.t, err)
	require.True(r.t, confirmed.Wait())
}

// ask sends a request as the administrator.
func (r *running) ask(method, path, body string) (*http.Request, *http.Response, []byte) {
	request, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.web+path, strings.NewReader(body))
	require.NoError(r.t, err)
	request.SetBasicAuth("guest", "guest")
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(r.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(r.t, err)
	return request, answer, text
}
