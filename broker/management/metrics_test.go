package management_test

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dashboard are the metrics that the queries of RabbitMQ's Grafana dashboard 10991 name.
var dashboard = strings.Fields(`
	rabbitmq_build_info rabbitmq_identity_info rabbitmq_erlang_uptime_seconds
	rabbitmq_connections rabbitmq_channels rabbitmq_queues rabbitmq_consumers
	rabbitmq_connections_opened_total rabbitmq_connections_closed_total rabbitmq_channels_opened_total rabbitmq_channels_closed_total
	rabbitmq_queues_declared_total rabbitmq_queues_created_total rabbitmq_queues_deleted_total
	rabbitmq_queue_messages_ready rabbitmq_queue_messages_unacked
	rabbitmq_process_open_fds rabbitmq_process_max_fds rabbitmq_process_open_tcp_sockets rabbitmq_process_max_tcp_sockets
	rabbitmq_process_resident_memory_bytes rabbitmq_resident_memory_limit_bytes
	rabbitmq_disk_space_available_bytes rabbitmq_disk_space_available_limit_bytes
	rabbitmq_message_size_bytes_bucket rabbitmq_message_size_bytes_sum rabbitmq_message_size_bytes_count
	rabbitmq_global_publishers rabbitmq_global_consumers
	rabbitmq_global_messages_received_total rabbitmq_global_messages_received_confirm_total rabbitmq_global_messages_confirmed_total
	rabbitmq_global_messages_routed_total rabbitmq_global_messages_unroutable_dropped_total rabbitmq_global_messages_unroutable_returned_total
	rabbitmq_global_messages_delivered_total rabbitmq_global_messages_delivered_consume_auto_ack_total
	rabbitmq_global_messages_delivered_consume_manual_ack_total rabbitmq_global_messages_delivered_get_auto_ack_total
	rabbitmq_global_messages_delivered_get_manual_ack_total rabbitmq_global_messages_get_empty_total
	rabbitmq_global_messages_acknowledged_total rabbitmq_global_messages_redelivered_total
	rabbitmq_global_messages_dead_lettered_expired_total rabbitmq_global_messages_dead_lettered_rejected_total
	rabbitmq_global_messages_dead_lettered_maxlen_total rabbitmq_global_messages_dead_lettered_delivery_limit_total
	rabbitmq_global_messages_dead_lettered_confirmed_total`)

// scrape returns the text of a path, checked by promtool unless the run is a short one.
func (x *site) scrape(path string) string {
	x.t.Helper()
	own := prometheus.NewRegistry()
	own.MustRegister(x.b)
	w := httptest.NewRecorder()
	x.api.Metrics(own).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	require.Equal(x.t, http.StatusOK, w.Code, w.Body)
	if testing.Short() {
		return w.Body.String()
	}
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = strings.NewReader(w.Body.String())
	if out, err := check.CombinedOutput(); err != nil {
		x.t.Errorf("promtool (apt-get install -y --no-install-recommends prometheus) on %s: %v\n%s", path, err, out)
	}
	return w.Body.String()
}

// series lists the names and labels of a scrape's series, and their values.
func series(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			all[line[:i]] = strings.TrimSpace(line[i+1:])
		}
	}
	return all
}

func TestDashboardFills(t *testing.T) {
	x := world(t)
	text := x.scrape("/metrics")
	named := map[string]bool{}
	for one := range series(text) {
		name, _, _ := strings.Cut(one, "{")
		named[name] = true
	}
	for _, name := range dashboard {
		assert.True(t, named[name], name)
	}
	assert.True(t, named["curfew_messages_ready"], "our own stand beside them")
	id := x.ask("GET", "/api/global-parameters/internal_cluster_id", nil).is(200, "").object()["value"].(string)
	assert.Contains(t, text, `rabbitmq_identity_info{rabbitmq_cluster="curfew@test",rabbitmq_cluster_permanent_id="`+id+`"`)
	assert.Contains(t, text, `rabbitmq_endpoint="aggregated"`)
	all := series(text)
	for name, want := range map[string]string{
		"rabbitmq_queue_messages_ready": "1", "rabbitmq_queue_messages_unacked": "1", "rabbitmq_connections": "1", "rabbitmq_queues": "1",
		`rabbitmq_global_messages_received_total{protocol="amqp091"}`:                                                       "2",
		`rabbitmq_global_messages_confirmed_total{protocol="amqp091"}`:                                                      "2",
		`rabbitmq_global_messages_routed_total{protocol="amqp091"}`:                                                         "2",
		`rabbitmq_global_messages_delivered_consume_manual_ack_total{protocol="amqp091",queue_type="rabbit_classic_queue"}`: "1",
		`rabbitmq_message_size_bytes_bucket{protocol="amqp091",le="100"}`:                                                   "2",
		`rabbitmq_global_publishers{protocol="amqp091"}`:                                                                    "1",
		`rabbitmq_global_consumers{protocol="amqp091"}`:                                                                     "1",
	} {
		assert.Equal(t, want, all[name], name)
	}
}

// TestBucketsAsTheDashboardMatchesThem: le="100.0", which is how OpenMetrics writes it.
func TestBucketsAsTheDashboardMatchesThem(t *testing.T) {
	x := world(t)
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	w := httptest.NewRecorder()
	x.api.Metrics(prometheus.NewRegistry()).ServeHTTP(w, r)
	assert.Contains(t, w.Body.String(), `rabbitmq_message_size_bytes_bucket{protocol="amqp091",le="100.0"} 2`)
}

func TestMetricsPerObject(t *testing.T) {
	x := world(t)
	text := x.scrape("/metrics/per-object")
	all := series(text)
	assert.Equal(t, "1", all[`rabbitmq_queue_messages_ready{queue="q",vhost="/"}`])
	assert.Equal(t, "NaN", all[`rabbitmq_queue_head_message_timestamp{queue="q",vhost="/"}`])
	assert.Contains(t, text, `rabbitmq_channel_messages_published_total{channel="`)
	assert.Contains(t, text, `rabbitmq_endpoint="per-object"`)
}

func TestMetricsDetailed(t *testing.T) {
	x := world(t)
	x.ask("PUT", "/api/queues/%2F/other", `{}`).is(201, "")
	names := func(path string) (queues []string) {
		for one := range series(x.scrape("/metrics/detailed" + path)) {
			if !strings.Contains(one, "_info{") {
				queues = append(queues, one)
			}
		}
		return queues
	}
	assert.Empty(t, names(""), "nothing but what was asked for")
	assert.ElementsMatch(t, []string{
		`rabbitmq_detailed_queue_messages_ready{queue="other",vhost="/"}`, `rabbitmq_detailed_queue_messages_unacked{queue="other",vhost="/"}`,
		`rabbitmq_detailed_queue_messages{queue="other",vhost="/"}`, `rabbitmq_detailed_queue_messages_delayed{queue="other",vhost="/"}`, `rabbitmq_detailed_queue_consumers{queue="other",vhost="/"}`,
	}, names("?family=queue_coarse_metrics&family=queue_consumer_count&vhost=/&queue=^o"))
	assert.Empty(t, names("?family=queue_coarse_metrics&vhost=none"))
	assert.Contains(t, names("?family=exchange_bindings&family=vhost_status"), `rabbitmq_cluster_exchange_bindings{exchange="x",type="topic",vhost="/"}`)
	w := httptest.NewRecorder()
	x.api.Metrics(prometheus.NewRegistry()).ServeHTTP(w, httptest.NewRequest("GET", "/metrics/detailed?queue=(", nil))
	assert.Equal(t, http.StatusBadRequest, w.Code)
}

// TestTotalsNeverFall: closing and deleting takes gauges down and no counter.
func TestTotalsNeverFall(t *testing.T) {
	x := world(t)
	before := series(x.scrape("/metrics"))
	c, err := amqp091.Dial(x.amqp)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	x.ask("DELETE", "/api/queues/%2F/q", nil).is(204, "")
	x.api.Server.CloseConnections("test", func(string, string, string) bool { return true })
	after := series(x.scrape("/metrics"))
	for name, was := range before {
		if base, _, _ := strings.Cut(name, "{"); strings.HasSuffix(base, "_total") {
			assert.GreaterOrEqual(t, len(after[name]), len(was), name)
			assert.False(t, len(after[name]) == len(was) && after[name] < was, "%s fell from %s to %s", name, was, after[name])
		}
	}
	assert.Equal(t, "0", after["rabbitmq_queues"])
}
