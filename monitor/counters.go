package monitor

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curfew/broker/deadline"
)

const (
	// maxQueues bounds the queues that have metrics of their own; all others share
	// the label "_other". One in which nothing has expired for unusedFor gives way, or if it was deleted, for deletedFor: it was scraped by then.
	maxQueues   = 500
	otherQueues = "_other"
	unusedFor   = 10 * time.Minute
	deletedFor  = time.Minute
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
	held   atomic.Uint64 // messages that expired after a consumer had held them past their deadlines

	mu      sync.Mutex
	labels  map[[2]string]expiry // of the queues that have metrics of their own, what last expired there
	looked  time.Time            // when they were last looked through for room
	expired map[uint64]uint64    // messages, by the queue's number; forecasts take out the queues that they do not see
	queues  map[uint64]*metered  // those that the last forecast saw; nil: there was none yet
}

// expiry is when something expired, and in the queue of which number.
type expiry struct {
	queue uint64
	at    time.Time
}

// add counts n messages of a queue that expired, and returns the queue's labels.
func (c *counters) add(number uint64, vhost, queue string, n int64) (string, string) {
	if strings.HasPrefix(queue, serverNamed) {
		queue = serverNamed + "*"
	}
	labels, now := [2]string{deadline.Label(vhost), deadline.Label(queue)}, time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired[number] += uint64(n)
	if _, known := c.labels[labels]; !known {
		c.makeRoomLocked(now)
		if len(c.labels) >= maxQueues {
			return otherQueues, otherQueues
		}
	}
	c.labels[labels] = expiry{number, now}
	return labels[0], labels[1]
}

// makeRoomLocked forgets queues in which nothing has expired for long, and those that were deleted, if there are too many.
func (c *counters) makeRoomLocked(now time.Time) {
	if len(c.labels) < maxQueues || now.Sub(c.looked) < time.Second {
		return
	}
	c.looked = now
	for labels, last := range c.labels {
		deleted := c.queues != nil && c.queues[last.queue] == nil
		if idle := now.Sub(last.at); idle > unusedFor || deleted && idle > deletedFor {
			delete(c.labels, labels)
			of := prometheus.Labels{"vhost": labels[0], "queue": labels[1]}
			c.fired.DeletePartialMatch(of)
			c.failed.DeletePartialMatch(of)
		}
	}
}

// expiredOf is how many messages of a queue have expired.
func (c *counters) expiredOf(queue uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expired[queue]
}

// keep forgets the queues that are not among those given, which are not changed any more.
func (c *counters) keep(queues map[uint64]*metered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queues = queues
	maps.DeleteFunc(c.expired, func(queue, _ uint64) bool { return queues[queue] == nil })
}
