package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"curfew/scheduler/storetest"
)

const (
	silentCount = 20
	silentTTL   = 8 * time.Second // over before the silence is noticed, 10 s after the last heartbeat at the earliest
	silentLimit = 2 * time.Minute
)

// TestSilentInstance: of three processes on one Redis one is killed and one stopped, both with deadlines pending. The third alerts for the
// killed one, once, with names and counts, and says that it is over when that one is back; it says nothing of the stopped one.
func TestSilentInstance(t *testing.T) {
	t.Parallel()
	busyMachine.RLock()
	defer busyMachine.RUnlock()
	redis, hook := storetest.StartRedis(t), startHook(t)
	start := func(name string, settings ...string) *curfew {
		c := startCurfew(t, append(settings, "REDIS_URL="+redis.URL, "INSTANCE="+name)...)
		eventually(t, recoverLimit, "the schedule in Redis", func() bool { return c.metric("curfew_schedule_up") == 1 })
		return c
	}
	dir := t.TempDir()
	watching := start("watching", "ALERT_URLS=webhook+"+hook.url)
	killed, stopped := start("killed", "DATA_DIR="+dir), start("stopped")
	q := topology{queue: "orders", dlx: "orders.dlx", dlq: "orders.dead"}
	for c, end := range map[*curfew]func(){stopped: stopped.stop, killed: killed.kill} {
		goClient{}.declare(t, c.url, q)
		goClient{}.publish(t, c.url, q.queue, slices.Repeat([]planned{{id: "x", ttlMillis: silentTTL.Milliseconds()}}, silentCount))
		eventually(t, recoverLimit, "the shadows to be written", func() bool {
			return c.metric("curfew_shadow_writes_total", `op="add"`, `result="ok"`) == silentCount
		})
		end()
	}

	eventually(t, silentLimit, "the alert", func() bool { return len(hook.said()) == 1 })
	want := fmt.Sprintf("killed firing %d %d in queue %q of vhost %q", silentCount, silentCount, q.queue, "/")
	if got := hook.said()[0]; got != want {
		t.Errorf("the alert says %q, not %q", got, want)
	}
	if silent := watching.metric("curfew_instance_silent"); silent != 1 {
		t.Errorf("%v instances are silent, not 1", silent)
	}
	if due := watching.metric("curfew_instance_due_deadlines", `peer="killed"`); due != silentCount {
		t.Errorf("%v deadlines are due, not %d", due, silentCount)
	}

	again := start("killed", "DATA_DIR="+dir)
	eventually(t, silentLimit, "the alert to be over", func() bool { return len(hook.said()) == 2 })
	if got := hook.said()[1]; !strings.HasPrefix(got, "killed resolved") {
		t.Errorf("then the alert says %q", got)
	}
	eventually(t, recoverLimit, "the dead letters", func() bool { return readyCount(t, again.url, q.dlq) == silentCount })
}

// hook collects what is posted about silent instances: "<which> <status> <count> <queues>".
type hook struct {
	url   string
	mu    sync.Mutex
	posts []string
}

func startHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

func (h *hook) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var post struct {
		Status                          string
		CommonLabels, CommonAnnotations map[string]string
	}
	err := json.NewDecoder(r.Body).Decode(&post)
	if err == nil && post.CommonLabels["alertname"] != "CurfewInstanceSilent" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.posts = append(h.posts, err.Error())
		return
	}
	about := post.CommonAnnotations
	h.posts = append(h.posts, fmt.Sprint(post.CommonLabels["peer"], " ", post.Status, " ", about["count"], " ", about["queues"]))
}

func (h *hook) said() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.posts)
}
