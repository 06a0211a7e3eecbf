package rabbitmq

import (
	"strconv"
	"testing"
	"time"

	"curfew/monitor/rabbitmq/keeper"
)

// TestKeeperExpiresWhatRabbitMQAloneDoesNot: 10,000 messages of mixed TTLs behind one of an hour.
func TestKeeperExpiresWhatRabbitMQAloneDoesNot(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	_, url := n.vhost(t)
	const count, soon = 10_000, 4 * time.Second
	for _, kind := range queueTypes {
		t.Run(string(kind), func(t *testing.T) {
			alone := declareKept(t, url, string(kind)+".alone", kind, nil)
			kept := declareKept(t, url, string(kind)+".kept", kind, nil)
			r := kept.keep(t, nil)
			r.reach(t, keeper.Keeping, 0)
			due := 0
			for _, q := range []*keptQueue{alone, kept} {
				ttl := mixed(1, soon)
				due = 0
				q.fill(count, strconv.Itoa, func(i int) time.Duration {
					d := ttl(i)
					if d < time.Minute {
						due++
					}
					return d
				})
			}
			kept.expectDead(due, answerLimit)
			late := kept.lateness()
			t.Logf("%s, %d messages, %d due: RabbitMQ alone dead-lettered %d, with the keeper %d; late p50 %v p99 %v max %v",
				kind, count, due, alone.dead(), kept.dead(), percentile(late, 0.5), percentile(late, 0.99), late[len(late)-1])
			if alone.dead() > 10 {
				t.Errorf("RabbitMQ alone dead-lettered %d", alone.dead())
			}
			eventually(t, answerLimit, "reports of all expiries", func() bool {
				// Some expire before the keeper has seen them: the machine is slow, and they reach the head by themselves.
				counts := r.Status().Counts
				r.mu.Lock()
				defer r.mu.Unlock()
				return len(r.expired) == due-(count-int(counts.Taken-counts.Early))
			})
			s := r.reach(t, keeper.Keeping, count-due)
			if s.Counts.Early > 0 {
				t.Errorf("%d came back early", s.Counts.Early)
			}
			r.stop()
			if s := r.Status(); s.LastRelease.Messages != count-due {
				t.Errorf("released %+v", s.LastRelease)
			} else {
				t.Logf("release of %d took %v", s.LastRelease.Messages, s.LastRelease.Took)
			}
			ids := kept.drain(t, count-due)
			if n := breaks(ids); n > 0 {
				t.Errorf("%d breaks in the order of the %d left", n, len(ids))
			}
		})
	}
}
