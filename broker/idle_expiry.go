package broker

import (
	"sync"
	"time"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/message"
	"curfew/broker/internal/topology"
)

// idlers are the queues and exchanges of a virtual host whose x-auto-delete-on-idle has run
// out while messages are delayed. A delayed message counts as use of the queue that its key
// names in the default exchange, and of each exchange that it will pass (Service Bus: AutoDeleteOnIdle; RabbitMQ's
// x-expires has nothing like it). Which those are is known only by routing it. So one pass over all
// delayed messages checks everything that has gathered, in a goroutine that exists only for
// that long: timers do not wait for it, and publishing keeps no index for it.
//
// No message is missed: a message that is due is in the line of letters until it has
// arrived, which counts as use, and so does publishing one (markAwaited).
type idlers struct {
	mu        sync.Mutex // leaf
	queues    []*Queue
	exchanges []*topology.Exchange
	checking  bool
}

const (
	// idlePage is how many delayed messages are copied at a time.
	idlePage = 64
	// idleShare bounds the time that the checks take, to one part in idleShare+1, when very
	// many messages are delayed and queues become idle one after the other.
	idleShare = 20
)

// markAwaited marks the queues that a delayed message would go to now as used.
func markAwaited(targets []topology.Target, now deadline.Instant) {
	for i := range targets {
		if q := targets[i].Queue; !targets[i].Bound && q.Settings().IdleMillis != 0 {
			q.Messages.Idle.MarkUsed(now)
		}
	}
}

// checkIdle starts the check of a queue or exchange that may have been idle for its period, if
// messages are delayed. False: no check is needed, or nothing is delayed.
func (vh *VHost) checkIdle(q *Queue, x *topology.Exchange) bool {
	if vh.delays.Load() == nil || q != nil && !q.Messages.Idle.BeginCheck() {
		return false
	}
	i := &vh.idlers
	i.mu.Lock()
	defer i.mu.Unlock()
	if q != nil {
		i.queues = append(i.queues, q)
	} else {
		i.exchanges = append(i.exchanges, x)
	}
	if !i.checking {
		i.checking = true
		vh.b.background.Go(vh.checkIdlers)
	}
	return true
}

// take returns the queues and exchanges to check now, or ends the checking: then awaited is
// nil.
func (i *idlers) take() (awaited map[*Queue]bool, exchanges []*topology.Exchange) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.queues)+len(i.exchanges) == 0 {
		i.checking = false
		return nil, nil
	}
	awaited = make(map[*Queue]bool, len(i.queues))
	for _, q := range i.queues {
		awaited[q] = false
	}
	exchanges = i.exchanges
	i.queues, i.exchanges = nil, nil
	return awaited, exchanges
}

// checkIdlers checks queues and exchanges until none are left, or the broker ends.
func (vh *VHost) checkIdlers() {
	for awaited, exchanges := vh.idlers.take(); awaited != nil; awaited, exchanges = vh.idlers.take() {
		began := time.Now()
		if !vh.findAwaited(awaited, len(exchanges) > 0) {
			return
		}
		for q, is := range awaited {
			q.Judge(is)
		}
		for _, x := range exchanges {
			x.ExpireIdle()
		}
		select {
		case <-time.After(idleShare * time.Since(began)):
		case <-vh.b.quit:
			return
		}
	}
}

// findAwaited sets awaited to true for each queue that a delayed message would go to if it
// were due now. With all it routes every delayed message, so that each exchange notes those
// that would pass through it. False: the broker ends, and the result is not complete.
func (vh *VHost) findAwaited(awaited map[*Queue]bool, all bool) bool {
	var ways topology.Routes
	left := len(awaited)
	for _, pageOf := range []func(from uint64, most int) (page []DelayedMessage, next uint64){vh.Delayed, vh.leaving} {
		for from, more := uint64(0), true; more && (all || left > 0); more = from != 0 {
			select {
			case <-vh.b.quit:
				return false
			default:
			}
			var page []DelayedMessage
			page, from = pageOf(from, idlePage)
			for i := range page {
				for _, t := range targetsOf(&page[i], vh, &ways) {
					if is, checked := awaited[t.Queue]; checked && !is && !t.Bound {
						awaited[t.Queue] = true
						left--
					}
				}
			}
		}
	}
	return true
}

// targetsOf returns the queues that the message would go to if it were due now.
func targetsOf(m *DelayedMessage, vh *VHost, ways *topology.Routes) []topology.Target {
	view, _ := amqp.ViewProperties(m.Properties) // they were read when it came
	keys := message.MarksOf(view.Headers)&message.KeyMarks != 0
	targets, _ := ways.Find(vh.VHost, []byte(m.Exchange), []byte(m.RoutingKey), topology.ByClient, topology.Headers{Raw: view.Headers}, keys) // none: it is parked
	return targets
}
