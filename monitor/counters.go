package monitor

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"curfew/broker/deadline"
)

const (
	// maxQueues bounds the queues that have metrics of their own; all others share
	// the label "_other".
	maxQueues   = 500
	otherQueues = "_other"
	// maxQueueCounters bounds the queues whose counters are cached. A full cache is emptied.
	maxQueueCounters = 4096
)

// failReason is why a deadline failed: its message expired too late, or its dead letter had
// nowhere to go.
type failReason uint8

const (
	failLate    failReason = iota // late, for a reason not listed below
	failStalled                   // late because the schedule was up and did not fire
	failParked                    // the dead letter had nowhere to go

	failReasons = int(iota)
)

func (r failReason) String() string {
	return [failReasons]string{"late", "stalled", "parked"}[r]
}

// counters holds the counters of all queues. Safe for concurrent use.
type counters struct {
	queueName func(uint64) (vhost, name string, ok bool)
	fired     *prometheus.CounterVec // vhost, queue, action, path
	failed    *prometheus.CounterVec // vhost, queue, reason
	recent    recent

	mu     sync.Mutex
	byID   map[uint64]*queueCounters // by incarnation
	labels map[[2]string]struct{}
}

// queueCounters holds the counters of one queue. Each is made when it is first used.
type queueCounters struct {
	vhost, queue string // its name
	labels       [2]string
	expired      atomic.Uint64 // messages

	mu     sync.Mutex
	fired  [deadline.Actions][deadline.Paths]prometheus.Counter
	failed [failReasons]prometheus.Counter
}

// of returns the counters of a queue. vhost and name are its name, in case it has been deleted
// since; they may be empty.
func (c *counters) of(queue uint64, vhost, name string) *queueCounters {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.byID[queue]; q != nil {
		return q
	}
	if len(c.byID) >= maxQueueCounters {
		clear(c.byID)
	}
	q := c.openLocked(queue, vhost, name)
	c.byID[queue] = q
	return q
}

func (c *counters) openLocked(queue uint64, vhost, name string) *queueCounters {
	if v, n, ok := c.queueName(queue); ok {
		vhost, name = v, n
	} else if name == "" {
		return &queueCounters{vhost: otherQueues, queue: otherQueues, labels: [2]string{otherQueues, otherQueues}}
	}
	labels := [2]string{strings.ToValidUTF8(vhost, "\ufffd"), strings.ToValidUTF8(name, "\ufffd")} // of an older version a name may be anything
	if _, known := c.labels[labels]; !known {
		if len(c.labels) >= maxQueues {
			labels = [2]string{otherQueues, otherQueues}
		} else {
			c.labels[labels] = struct{}{}
		}
	}
	return &queueCounters{vhost: vhost, queue: name, labels: labels}
}

// expiredOf is how many messages of a queue have expired.
func (c *counters) expiredOf(queue uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.byID[queue]; q != nil {
		return q.expired.Load()
	}
	return 0
}

func (c *counters) countFired(q *queueCounters, a deadline.Action, p deadline.Path, n int64) {
	q.expired.Add(uint64(n))
	q.mu.Lock()
	defer q.mu.Unlock()
	counter := &q.fired[a][p]
	if *counter == nil {
		*counter = c.fired.WithLabelValues(q.labels[0], q.labels[1], a.String(), p.String())
	}
	(*counter).Add(float64(n))
}

func (c *counters) countFailed(q *queueCounters, r failReason, n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	counter := &q.failed[r]
	if *counter == nil {
		*counter = c.failed.WithLabelValues(q.labels[0], q.labels[1], r.String())
	}
	(*counter).Add(float64(n))
}
