package broker

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"curfew/broker/deadline"
	"curfew/broker/internal/forward"
	"curfew/broker/internal/message"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// counters are totals since the start, in addition to what each queue counts under its lock.
type counters struct {
	published, unroutable atomic.Uint64
	sizes                 sizeCounters
}

func metric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("curfew_"+name, help, labels, nil)
}

var (
	publishedDesc  = metric("messages_published_total", "Messages published, unroutable ones included.")
	unroutableDesc = metric("messages_unroutable_total", "Messages published that no queue was bound for.")
	refusedDesc    = metric("messages_refused_total", "Publishes a full queue refused (x-overflow reject-publish).")
	deliveredDesc  = metric("messages_delivered_total", "Messages delivered to consumers and gets, redeliveries included.")
	droppedDesc    = metric("messages_expired_dropped_total", "Messages that expired in a queue without a dead-letter exchange.")
	lapsedDesc     = metric("locks_lapsed_total", "Deliveries taken back because they were held for longer than x-lock-duration.")
	deadDesc       = metric("dead_letters_total", "Messages that left a queue with a dead-letter exchange, by reason.", "reason")
	parkedDesc     = metric("dead_letters_unroutable_total", "Messages parked in "+policy.UndeliverableQueue+": dead letters whose exchange was missing or routed nowhere, or that were bounded, and delayed messages that no queue was bound for when due.")
	lostDesc       = metric("dead_letters_dropped_total", "Dead letters that no queue took: unroutable with CURFEW_UNROUTABLE=drop, or a cycle.")
	cyclesDesc     = metric("dead_letter_cycles_total", "Deliveries of dead letters left out because they would go round in a cycle.")
	boundedDesc    = metric("dead_letters_bounded_total", "Dead letters parked because they had died too often, or would have become too many copies, without a rejection by a consumer.")
	waitingDesc    = metric("dead_letters_waiting", "Messages that have left their queue and are on their way to where they are dead-lettered.")
	movedDesc      = metric("messages_moved_total", "Messages moved to other queues by a replay.")
	receiptsDesc   = metric("expiry_receipts_total", "Receipts for expired messages, by what became of them.", "result")
	readyDesc      = metric("messages_ready", "Messages waiting in queues.")
	unackedDesc    = metric("messages_unacked", "Messages delivered and not yet settled.")
	delayedDesc    = metric("messages_delayed", "Delayed messages that wait until they are due.")
	queuesDesc     = metric("queues", "Queues declared.")
	consumersDesc  = metric("consumers", "Consumers on queues.")
	idlePolicyDesc = metric("policies_not_in_force", "Saved policies that govern nothing, as this version refuses them.")
	clockDesc      = metric("clock_offset_seconds", "The clock deadlines are stamped with less the machine's wall clock; not 0 once the wall clock is set.")
	segmentsDesc   = metric("store_segments", "Segments of the message store, in which messages and the records about them stand.")
	storeDesc      = metric("store_bytes", "Bytes of these segments.")
	diskWaitDesc   = metric("journal_disk_wait_seconds", "How long the message store has waited for the disk to answer a write or a sync; 0 if it waits for none.")
	holdDesc       = metric("lock_hold_seconds_max", "The longest time in the last minute or two for which one operation held a lock that others share: that of a queue, that of what a virtual host has declared, or one of the message store.", "lock")
	touchedDesc    = metric("lock_messages_max", "The most messages that one operation worked on under the lock of a queue since the start. It has a bound, whatever a queue holds.", "lock")
	turnDesc       = metric("turn_seconds_max", "The longest turn of each shared loop of the broker in the last minute or two: timers of queues, of delayed messages, and the moving of dead letters.", "loop")
	liveDesc       = metric("store_live_bytes", "Estimate of what of them messages still need; the rest is garbage that compaction takes or that goes with its segment.")
)

// Describe implements prometheus.Collector.
func (b *Broker) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(b, ch) }

// Collect implements prometheus.Collector. It visits every queue and segment.
func (b *Broker) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v int) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
	c, forwarded := &b.counters, &b.forwarder.Counters
	counter(publishedDesc, c.published.Load())
	counter(unroutableDesc, c.unroutable.Load()+forwarded.Unroutable.Load())
	counter(refusedDesc, b.env.Counters.Refused.Load())
	delivered := b.registry.Stats()
	counter(deliveredDesc, delivered.AllDelivered())
	counter(droppedDesc, b.env.Counters.ExpiredDropped.Load())
	counter(lapsedDesc, b.env.Counters.Lapsed.Load())
	counter(movedDesc, b.env.Counters.Moved.Load())
	counter(parkedDesc, forwarded.Parked.Load())
	counter(lostDesc, b.env.Counters.DeadLettersLost.Load())
	counter(cyclesDesc, forwarded.Cycles.Load())
	counter(boundedDesc, forwarded.Bounded.Load())
	gauge(waitingDesc, int(max(b.env.Waiting.Load(), 0)))
	for i := range forwarded.Receipts {
		counter(receiptsDesc, forwarded.Receipts[i].Load(), forward.ReceiptResult(i).String())
	}
	for _, r := range []queue.Reason{queue.Expired, queue.Rejected, queue.MaxLength, queue.DeliveryLimit} {
		counter(deadDesc, forwarded.DeadLettered[r].Load(), message.ReasonName(r))
	}
	var ready, unacked, consumers int
	all := b.registry.Queues()
	for _, q := range all {
		r, u, n := q.Counts()
		ready, unacked, consumers = ready+r, unacked+u, consumers+n
	}
	gauge(readyDesc, ready)
	gauge(unackedDesc, unacked)
	gauge(delayedDesc, b.delayedMessages())
	gauge(queuesDesc, len(all))
	gauge(consumersDesc, consumers)
	gauge(idlePolicyDesc, b.policiesNotInForce())
	ch <- prometheus.MustNewConstMetric(clockDesc, prometheus.GaugeValue, b.ClockOffset().Seconds())
	store := b.env.Store.Stats()
	gauge(segmentsDesc, store.Segments)
	gauge(storeDesc, int(store.MappedBytes))
	gauge(liveDesc, int(store.LiveBytes))
	seconds := func(d *prometheus.Desc, of *deadline.Longest, label string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, of.Value(b.Now()).Seconds(), label)
	}
	ch <- prometheus.MustNewConstMetric(holdDesc, prometheus.GaugeValue, b.env.Store.LongestHold().Seconds(), "store")
	seconds(holdDesc, &b.env.Holds.Longest, "queue")
	seconds(holdDesc, &b.env.VHostLocks, "vhost")
	ch <- prometheus.MustNewConstMetric(touchedDesc, prometheus.GaugeValue, float64(b.env.Holds.Touched.Load()), "queue")
	seconds(turnDesc, &b.env.Timers.Turns, "timers")
	seconds(turnDesc, &b.env.DelayedTimers.Turns, "delayed")
	seconds(turnDesc, &b.forwarder.Turns, "dead_letters")
	ch <- prometheus.MustNewConstMetric(diskWaitDesc, prometheus.GaugeValue, b.env.Store.DiskWait().Seconds())
}

// policiesNotInForce counts them in all virtual hosts.
func (t *vhostTable) policiesNotInForce() (n int) {
	for _, vh := range t.VHosts() {
		n += vh.Policies.NotInForce()
	}
	return n
}
