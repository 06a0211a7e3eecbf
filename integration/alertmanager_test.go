package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/testenv"
)

// TestAlertmanagerAndPrometheus: the real ones. Deadlines missed in three queues reach Alertmanager from Curfew as one incident, which is
// resolved when Curfew says that it is over. Prometheus scrapes Curfew and alerts on what it reads there. The
// watchdog fires all the time.
func TestAlertmanagerAndPrometheus(t *testing.T) {
	t.Parallel()
	hook := startManagerHook(t)
	manager := startAlertmanager(t, hook.url)
	c := startCurfew(t, "ALERT_URLS=alertmanager+"+manager+",amqp:curfew.events", "INSTANCE=here")
	startPrometheus(t, c.ops, manager)
	events := subscribe(t, c.url, "deadline_missed.#")

	queues := []string{"orders-0", "orders-1", "orders-2"}
	for i, name := range queues {
		goClient{}.declare(t, c.url, topology{queue: name, dlx: "dlx", dlq: fmt.Sprintf("dead-%d", i)})
	}
	misses := missUntil(t, c, queues, func() bool { return hook.saw("curfew", "firing", queues...) && hook.saw("prometheus", "firing") })
	eventually(t, startLimit, "the group to be resolved", func() bool { return hook.saw("curfew", "resolved") && hook.resolved(queues) })
	eventually(t, startLimit, "Prometheus's alert to be resolved", func() bool { return hook.saw("prometheus", "resolved") })
	eventually(t, startLimit, "the watchdog", func() bool { return slices.Contains(firingIn(t, manager), "CurfewWatchdog") })
	if firing := firingIn(t, manager); slices.Contains(firing, "CurfewDeadlineMissed") {
		t.Errorf("%v still fire", firing)
	}
	for firing := true; firing; {
		select {
		case d := <-events:
			var event struct {
				Status string
				Queues int
				Toll   int
			}
			check(t, json.Unmarshal(d.Body, &event))
			firing = event.Status == "firing"
			if event.Queues != len(queues) || !firing && (event.Status != "resolved" || event.Toll != len(queues)*misses) {
				t.Errorf("after %d misses the exchange was given %s", misses, d.Body)
			}
		case <-time.After(startLimit):
			t.Fatal("no event of the end")
		}
	}
}

// missUntil has a deadline missed in each queue every second, so that none is over, until done says so. It returns how many in each.
func missUntil(t testing.TB, c *curfew, queues []string, done func() bool) (misses int) {
	t.Helper()
	ch := openChannel(t, dial(t, c.url))
	second := time.NewTicker(time.Second)
	defer second.Stop()
	eventually(t, 2*startLimit, "both alerts to fire", func() bool {
		select {
		case <-second.C:
			for _, name := range queues {
				check(t, ch.PublishWithContext(t.Context(), "", name, true, false, amqp091.Publishing{Expiration: "50"}))
			}
			misses++
		default:
		}
		return done()
	})
	return misses
}

// subscribe binds a queue to curfew.events, which is there from the first alert on or, here, before.
func subscribe(t testing.TB, url, key string) <-chan amqp091.Delivery {
	t.Helper()
	conn, err := amqp091.Dial(url)
	check(t, err)
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	check(t, err)
	check(t, ch.ExchangeDeclare("curfew.events", "topic", true, false, false, false, nil))
	q, err := ch.QueueDeclare("", false, true, true, false, nil)
	check(t, err)
	check(t, ch.QueueBind(q.Name, key, "curfew.events", false, nil))
	deliveries, err := ch.Consume(q.Name, "", true, true, false, false, nil)
	check(t, err)
	return deliveries
}

const managerConfig = `
route:
  receiver: hook
  group_by: [alertname]
  group_wait: 1s
  group_interval: 1s
  repeat_interval: 1h
receivers:
  - name: hook
    webhook_configs: [{url: %q, send_resolved: true}]
`

func startAlertmanager(t testing.TB, hook string) (url string) {
	t.Helper()
	dir, addr := t.TempDir(), testenv.FreeAddr()
	config := filepath.Join(dir, "alertmanager.yml")
	check(t, os.WriteFile(config, fmt.Appendf(nil, managerConfig, hook), 0o600))
	startTool(t, "prometheus-alertmanager", "--config.file="+config, "--storage.path="+dir, "--web.listen-address="+addr, "--cluster.listen-address=")
	awaitReady(t, "http://"+addr+"/-/ready")
	return "http://" + addr
}

const prometheusConfig = `
global: {scrape_interval: 1s, evaluation_interval: 1s}
scrape_configs:
  - {job_name: curfew, static_configs: [{targets: [%q]}]}
rule_files: [%q]
alerting:
  alertmanagers: [{static_configs: [{targets: [%q]}]}]
`

const prometheusRules = `
groups:
  - name: curfew
    rules:
      - alert: DeadlinesWereMissed
        expr: curfew_incident{condition="deadline_missed"} > 0
`

func startPrometheus(t testing.TB, ops, manager string) {
	t.Helper()
	dir, addr := t.TempDir(), testenv.FreeAddr()
	config, rules := filepath.Join(dir, "prometheus.yml"), filepath.Join(dir, "rules.yml")
	check(t, os.WriteFile(rules, []byte(prometheusRules), 0o600))
	check(t, os.WriteFile(config, fmt.Appendf(nil, prometheusConfig, strings.TrimPrefix(ops, "http://"), rules, strings.TrimPrefix(manager, "http://")), 0o600))
	startTool(t, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	awaitReady(t, "http://"+addr+"/-/ready")
	// An alert that fires before it knows its Alertmanager is sent a minute later.
	awaitText(t, "http://"+addr+"/api/v1/alertmanagers", manager)
	awaitText(t, "http://"+addr+"/api/v1/targets", `"health":"up"`)
}

// startTool runs a program of a Debian package until the end of the test.
func startTool(t testing.TB, name string, args ...string) {
	t.Helper()
	binary, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v; run: apt-get install -y --no-install-recommends prometheus prometheus-alertmanager", err)
	}
	log := new(testenv.Log)
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", name, log)
		}
	})
}

func awaitReady(t testing.TB, url string) {
	t.Helper()
	eventually(t, startLimit, url, func() bool {
		resp, err := http.Get(url)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func awaitText(t testing.TB, url, want string) {
	t.Helper()
	eventually(t, startLimit, want+" in "+url, func() bool {
		resp, err := http.Get(url)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(body), want)
	})
}

// firingIn names the alerts that fire in an Alertmanager.
func firingIn(t testing.TB, manager string) (names []string) {
	t.Helper()
	resp, err := http.Get(manager + "/api/v2/alerts")
	check(t, err)
	defer resp.Body.Close()
	var alerts []struct{ Labels map[string]string }
	check(t, json.NewDecoder(resp.Body).Decode(&alerts))
	for _, a := range alerts {
		names = append(names, a.Labels["alertname"])
	}
	return names
}

// managerHook is a receiver of Alertmanager's.
type managerHook struct {
	url   string
	mu    sync.Mutex
	posts []managerPost
}

type managerPost struct {
	Status      string
	GroupLabels map[string]string
	Alerts      []struct {
		Status              string
		Labels, Annotations map[string]string
	}
}

func startManagerHook(t testing.TB) *managerHook {
	t.Helper()
	h := &managerHook{}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

func (h *managerHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var post managerPost
	if err := json.NewDecoder(r.Body).Decode(&post); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.posts = append(h.posts, post)
}

// resolved reports whether each of these queues was reported as resolved.
func (h *managerHook) resolved(queues []string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	over := make(map[string]bool)
	for _, p := range h.posts {
		for _, a := range p.Alerts {
			for _, q := range queues {
				over[q] = over[q] || a.Status == "resolved" && strings.Contains(a.Annotations["worst"], q)
			}
		}
	}
	return !slices.ContainsFunc(queues, func(q string) bool { return !over[q] })
}

// saw reports whether one notification named all these queues, with that status, for Curfew's own alert or Prometheus's.
func (h *managerHook) saw(from, status string, queues ...string) bool {
	name := map[string]string{"curfew": "CurfewDeadlineMissed", "prometheus": "DeadlinesWereMissed"}[from]
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.posts, func(p managerPost) bool {
		told := make(map[string]bool)
		for _, a := range p.Alerts {
			if a.Status == status && (from == "prometheus" || a.Labels["instance"] == "here") {
				told[""] = true
				for _, q := range queues {
					told[q] = strings.Contains(a.Annotations["worst"], q)
				}
			}
		}
		missing := slices.ContainsFunc(queues, func(q string) bool { return !told[q] })
		return p.Status == status && p.GroupLabels["alertname"] == name && len(told) > 0 && !missing
	})
}
