package integration

import (
	"testing"

	"curfew/integration/testenv"
)

// TestKilled: the process is killed while deadlines fire. Started again on its data folder it keeps those that were left, also those that
// came while it was away: each confirmed message is dead-lettered once, none early, and the hour-long one is still queued.
func TestKilled(t *testing.T) {
	t.Parallel()
	redis := testenv.StartRedis(t)
	for name, settings := range map[string][]string{"embedded": nil, "redis": {"REDIS_URL=" + redis.URL}} {
		t.Run(name, func(t *testing.T) {
			settings = append(settings, "DATA_DIR="+t.TempDir())
			q := topology{queue: "orders", dlx: "orders.dlx", dlq: "orders.dead"}
			first := startCurfew(t, settings...)
			goClient{}.declare(t, first.url, q)
			published := goClient{}.publish(t, first.url, q.queue, randomPlan(t))
			eventually(t, answerLimit, "a quarter to be dead-lettered", func() bool {
				return first.metric("curfew_deadlines_fired_total") > shortCount/4
			})
			first.kill()

			second := startCurfew(t, settings...)
			arrived := goClient{}.collect(t, second.url, q.dlq, shortCount)()
			judge(t, published[1:], arrived)
			if head := (goClient{}).head(t, second.url, q.queue); head != hourLong {
				t.Errorf("the head of the queue is %q, not the hour-long message", head)
			}
			for queue, want := range map[string]int{q.queue: 1, q.dlq: 0} {
				if left := readyCount(t, second.url, queue); left != want {
					t.Errorf("%s has %d messages left, not %d", queue, left, want)
				}
			}
		})
	}
}
