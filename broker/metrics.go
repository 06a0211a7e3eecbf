package broker

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curfew/broker/deadline"
	"curfew/broker/internal/forward"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// counters are totals since the start, in addition to what each queue counts under its lock.
type counters struct {
	published, unroutable atomic.Uint64
	sizes                 sizeCounters
}

// Describe implements prometheus.Collector.
func (b *Broker) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(b, ch) }

// Collect implements prometheus.Collector. It visits every queue and segment.
func (b *Broker) Collect(ch chan<- prometheus.Metric) {
	m := deadline.Metrics(ch)
	gauge := func(name, help string, v int) { m.Gauge(name, help, float64(v)) }
	c, forwarded := &b.counters, &b.forwarder.Counters
	m.Counter("curfew_messages_published_total", "Messages published, unroutable ones included.", c.published.Load())
	m.Counter("curfew_messages_unroutable_total", "Messages published that no queue was bound for.", c.unroutable.Load()+forwarded.Unroutable.Load())
	m.Counter("curfew_messages_refused_total", "Publishes a full queue refused (x-overflow reject-publish).", b.env.Counters.Refused.Load())
	delivered := b.registry.Loads(nil)
	m.Counter("curfew_messages_delivered_total", "Messages delivered to consumers and gets, redeliveries included.", delivered.AllDelivered())
	m.Counter("curfew_messages_expired_dropped_total", "Messages that expired in a queue without a dead-letter exchange.", b.env.Counters.ExpiredDropped.Load())
	m.Counter("curfew_locks_lapsed_total", "Deliveries taken back because they were held for longer than x-lock-duration.", b.env.Counters.Lapsed.Load())
	m.Counter("curfew_messages_moved_total", "Messages moved to other queues by a replay.", b.env.Counters.Moved.Load())
	m.Counter("curfew_dead_letters_unroutable_total", "Messages parked in "+policy.UndeliverableQueue+": dead letters whose exchange was missing or routed nowhere, or that were bounded, and delayed messages that no queue was bound for when due.", forwarded.Parked.Load())
	m.Counter("curfew_dead_letters_dropped_total", "Dead letters that no queue took: unroutable with CURFEW_UNROUTABLE=drop, or a cycle.", b.env.Counters.DeadLettersLost.Load())
	m.Counter("curfew_dead_letter_cycles_total", "Deliveries of dead letters left out because they would go round in a cycle.", forwarded.Cycles.Load())
	m.Counter("curfew_dead_letters_bounded_total", "Dead letters parked because they had died too often, or would have become too many copies, without a rejection by a consumer.", forwarded.Bounded.Load())
	gauge("curfew_dead_letters_waiting", "Messages that have left their queue and are on their way to where they are dead-lettered.", int(max(b.env.Waiting.Load(), 0)))
	for i := range forwarded.Receipts {
		m.Counter("curfew_expiry_receipts_total", "Receipts for expired messages, by what became of them.", forwarded.Receipts[i].Load(), "result", forward.ReceiptResult(i).String())
	}
	for _, r := range []queue.Reason{queue.Expired, queue.Rejected, queue.MaxLength, queue.DeliveryLimit} {
		m.Counter("curfew_dead_letters_total", "Messages that left a queue with a dead-letter exchange, by reason.", forwarded.DeadLettered[r].Load(), "reason", r.String())
	}
	var ready, unacked, consumers int
	all := b.registry.Queues()
	for _, q := range all {
		r, u, n := q.Messages.Counts()
		ready, unacked, consumers = ready+r, unacked+u, consumers+n
	}
	gauge("curfew_messages_ready", "Messages waiting in queues.", ready)
	gauge("curfew_messages_unacked", "Messages delivered and not yet settled.", unacked)
	gauge("curfew_messages_delayed", "Delayed messages that wait until they are due.", b.delayedMessages())
	gauge("curfew_queues", "Queues declared.", len(all))
	gauge("curfew_consumers", "Consumers on queues.", consumers)
	gauge("curfew_policies_not_in_force", "Saved policies that govern nothing, as this version refuses them.", b.policiesNotInForce())
	m.Gauge("curfew_clock_offset_seconds", "The clock deadlines are stamped with less the machine's wall clock; not 0 once the wall clock is set.", b.ClockOffset().Seconds())
	store := b.env.Store.Stats()
	gauge("curfew_store_segments", "Segments of the message store, in which messages and the records about them stand.", store.Segments)
	gauge("curfew_store_bytes", "Bytes of these segments.", int(store.MappedBytes))
	gauge("curfew_store_live_bytes", "Estimate of what of them messages still need; the rest is garbage that compaction takes or that goes with its segment.", int(store.LiveBytes))
	for lock, held := range map[string]time.Duration{
		"store": b.env.Store.LongestHold(), "queue": b.env.Holds.Longest.Value(b.Now()), "vhost": b.env.VHostLocks.Value(b.Now()),
	} {
		m.Gauge("curfew_lock_hold_seconds_max", "The longest time in the last minute or two for which one operation held a lock that others share: that of a queue, that of what a virtual host has declared, or one of the message store.", held.Seconds(), "lock", lock)
	}
	m.Gauge("curfew_lock_messages_max", "The most messages that one operation worked on under the lock of a queue since the start. It has a bound, whatever a queue holds.", float64(b.env.Holds.Touched.Load()), "lock", "queue")
	for loop, turns := range map[string]*deadline.Longest{"timers": &b.env.Timers.Turns, "delayed": &b.env.DelayedTimers.Turns, "dead_letters": &b.forwarder.Turns} {
		m.Gauge("curfew_turn_seconds_max", "The longest turn of each shared loop of the broker in the last minute or two: timers of queues, of delayed messages, and the moving of dead letters.", turns.Value(b.Now()).Seconds(), "loop", loop)
	}
	m.Gauge("curfew_journal_disk_wait_seconds", "How long the message store has waited for the disk to answer a write or a sync; 0 if it waits for none.", b.env.Store.DiskWait().Seconds())
}

// policiesNotInForce counts them in all virtual hosts.
func (t *vhostTable) policiesNotInForce() (n int) {
	for _, vh := range t.VHosts() {
		n += vh.Policies.NotInForce()
	}
	return n
}
