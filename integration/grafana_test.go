package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/testenv"
)

// TestDashboardShowsADemo: after a demo, in a Curfew of its own and beside RabbitMQ, each expression of Grafana's dashboard, its variables and its
// annotations finds something in a real Prometheus.
func TestDashboardShowsADemo(t *testing.T) {
	t.Parallel()
	redis := testenv.StartRedis(t)
	sinks := startSinks(t)
	alerts := "ALERTS=" + alertsFile(t, "sinks: {hook: {url: \"webhook+"+sinks.url+"/webhook\"}}\ndeadManSwitch: {url: "+sinks.url+"/alive}")
	own := startCurfew(t, "REDIS_URL="+redis.URL, alerts)
	startRabbitMQ(t)
	keeping := startCurfew(t, "PRIMARY_URL="+sharedRabbitMQ.url, "PRIMARY_API_URL="+sharedRabbitMQ.http, "WATCH=keep:kept,keep:busy,observe:seen", "REDIS_URL="+redis.URL)

	addr, dir := testenv.FreeAddr(), t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	check(t, os.WriteFile(config, fmt.Appendf(nil, "global: {scrape_interval: 500ms}\nscrape_configs:\n  - {job_name: curfew, static_configs: [{targets: [%q, %q]}]}\n",
		strings.TrimPrefix(own.ops, "http://"), strings.TrimPrefix(keeping.ops, "http://")), 0o600))
	startTool(t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	awaitReady(t, "http://"+addr+"/-/ready")

	startTool(t, mustBinary(t, release), "demo", "--against", own.http)
	conn, err := amqp091.Dial(sharedRabbitMQ.url)
	check(t, err)
	defer conn.Close()
	ch, err := conn.Channel()
	check(t, err)
	_, err = ch.QueueDeclare("busy", false, false, false, false, amqp091.Table{"x-single-active-consumer": true}) // which is not kept
	check(t, err)
	for _, name := range []string{"kept", "seen"} {
		q := topology{queue: name, dlx: name + ".dlx", dlq: name + ".dead"}
		goClient{}.declare(t, sharedRabbitMQ.url, q)
		for i := range 50 {
			goClient{}.publish(t, sharedRabbitMQ.url, name, []planned{{id: strconv.Itoa(i), ttlMillis: int64(1000 * (50 - i))}})
		}
	}
	giveUp := time.Now().Add(time.Minute)
	var missing []string
	eventually(t, 2*time.Minute, "each expression to find something", func() bool {
		missing = slices.DeleteFunc(grafanaQueries(t), func(expr string) bool { return found(t, addr, expr) })
		return len(missing) == 0 || time.Now().After(giveUp)
	})
	for _, expr := range missing {
		t.Errorf("nothing is found by %s", expr)
	}
}

// grafanaQueries are the expressions of the dashboard: of its panels, of its annotations and of its variables.
func grafanaQueries(t testing.TB) (queries []string) {
	t.Helper()
	var dashboard struct {
		Panels      []struct{ Targets []struct{ Expr string } }
		Annotations struct{ List []struct{ Expr string } }
		Templating  struct{ List []struct{ Definition string } }
	}
	check(t, json.Unmarshal([]byte(deployed(t, "grafana/curfew.json")), &dashboard))
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, target.Expr)
		}
	}
	for _, a := range dashboard.Annotations.List {
		queries = append(queries, a.Expr)
	}
	for _, v := range dashboard.Templating.List {
		if selector, is := strings.CutPrefix(v.Definition, "label_values("); is {
			queries = append(queries, selector[:strings.LastIndex(selector, ",")])
		}
	}
	if len(queries) < 50 {
		t.Fatalf("only %d expressions were found", len(queries))
	}
	return queries
}

// found reports whether Prometheus has a series for an expression of the dashboard.
func found(t testing.TB, prometheus, expr string) bool {
	t.Helper()
	resp, err := http.Get("http://" + prometheus + "/api/v1/query?query=" + url.QueryEscape(filled.Replace(expr)))
	check(t, err)
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	check(t, json.NewDecoder(resp.Body).Decode(&answer))
	if answer.Status != "success" {
		t.Fatalf("%s: %s", expr, answer.Error)
	}
	return len(answer.Data.Result) > 0
}

var filled = strings.NewReplacer("$job", ".+", "$instance", ".+", "$vhost", ".*", "$queue", ".*", "$__rate_interval", "10s", "[30d]", "[1m]", "[1h]", "[1m]")
