package monitor

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curfew/broker/deadline"
)

const (
	// maxQueues bounds the queues that have metrics of their own; all others share
	// the label "_other". One in which nothing has expired for unusedFor gives way.
	maxQueues   = 500
	otherQueues = "_other"
	unusedFor   = 10 * time.Minute
	// serverNamed begins the names that the broker makes up. Such queues come and go with each client, and share a label.
	serverNamed = "amq.gen-"
)

// Why a deadline failed: its message expired too late, or its dead letter had nowhere to go.
const (
	failLate     = "late"     // for a reason not listed below
	failStalled  = "stalled"  // late because the schedule was up and did not fire
	failRabbitMQ = "rabbitmq" // late, in a queue of RabbitMQ that is only observed
	failParked   = "parked"   // the dead letter had nowhere to go
)

// counters holds the counters of all queues. Safe for concurrent use.
type counters struct {
	fired  *prometheus.CounterVec // vhost, queue, action, path
	failed *prometheus.CounterVec // vhost, queue, reason
	recent recent

	mu      sync.Mutex
	labels  map[[2]string]time.Time // the queues that have metrics of their own, and when something last expired there
	looked  time.Time               // when they were last looked through for room
	expired map[uint64]uint64       // messages, by the queue's number; forecasts take out the queues that they do not see
}

// labelsOf returns the labels of a queue.
func (c *counters) labelsOf(vhost, queue string) (string, string) {
	if strings.HasPrefix(queue, serverNamed) {
		queue = serverNamed + "*"
	}
	labels, now := [2]string{deadline.Label(vhost), deadline.Label(queue)}, time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.labels[labels]; !known {
		c.makeRoomLocked(now)
		if len(c.labels) >= maxQueues {
			return otherQueues, otherQueues
		}
	}
	c.labels[labels] = now
	return labels[0], labels[1]
}

// makeRoomLocked forgets queues in which nothing has expired for long, if there are too many.
func (c *counters) makeRoomLocked(now time.Time) {
	if len(c.labels) < maxQueues || now.Sub(c.looked) < time.Second {
		return
	}
	c.looked = now
	for labels, last := range c.labels {
		if now.Sub(last) > unusedFor {
			delete(c.labels, labels)
			of := prometheus.Labels{"vhost": labels[0], "queue": labels[1]}
			c.fired.DeletePartialMatch(of)
			c.failed.DeletePartialMatch(of)
		}
	}
}

// add counts messages of one queue that expired.
func (c *counters) add(queue uint64, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired[queue] += uint64(n)
}

// expiredOf is how many messages of a queue have expired.
func (c *counters) expiredOf(queue uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expired[queue]
}

// keep forgets the queues that are not among those given.
func (c *counters) keep(queues map[uint64]*metered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.expired, func(queue, _ uint64) bool { return queues[queue] == nil })
}
