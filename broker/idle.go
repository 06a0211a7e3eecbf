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
// out while messages are delayed. A delayed message counts as use of each queue that it will
// enter and of each exchange that it will pass (Service Bus: AutoDeleteOnIdle; RabbitMQ's
// x-expires has nothing like it). Only routing it shows which those are. So one look at all
// delayed messages judges everything that has gathered, in a goroutine that exists only
// meanwhile: timers do not wait for it, and publishing keeps no index for it.
//
// No message is missed: a message that is due is in the line of letters until it has
// arrived, which is use, and publishing one is use, too (await).
type idlers struct {
	mu        sync.Mutex // leaf
	queues    []*Queue
	exchanges []*topology.Exchange
	judging   bool
}

const (
	// idlePage is how many delayed messages are copied at a time to look at them.
	idlePage = 64
	// idleShare bounds what part of the time looking takes, where very many messages are
	// delayed and queues become idle one after the other.
	idleShare = 20
)

// await notes that a message was published that is delayed, and would go to these queues
// now.
func await(targets []topology.Target, now deadline.Instant) {
	for i := range targets {
		if q := targets[i].Queue; q.Settings().IdleMillis != 0 {
			q.Idle.MarkUsed(now)
		}
	}
}

// judge has a queue or exchange judged that may have been idle for its period, if messages are delayed.
// False: it has not, or nothing is delayed.
func (vh *VHost) judge(q *Queue, x *topology.Exchange) bool {
	if vh.delays.Load() == nil || q != nil && !q.Idle.BeginCheck() {
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
	if !i.judging {
		i.judging = true
		vh.b.ended.Go(vh.judgeIdlers)
	}
	return true
}

// take returns those to be judged now, or ends the judging: then awaited is nil.
func (i *idlers) take() (awaited map[*Queue]bool, exchanges []*topology.Exchange) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.queues)+len(i.exchanges) == 0 {
		i.judging = false
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

// judgeIdlers goes on until there are none, or the broker ends.
func (vh *VHost) judgeIdlers() {
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

// findAwaited sets to true those of the queues that a delayed message would go to if it
// were due now, and with all has every exchange note those that would pass through it;
// false: the broker ends, and they are not known.
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
					if is, judged := awaited[t.Queue]; judged && !is {
						awaited[t.Queue] = true
						left--
					}
				}
			}
		}
	}
	return true
}

// targetsOf are where the message would go if it were due now.
func targetsOf(m *DelayedMessage, vh *VHost, ways *topology.Routes) []topology.Target {
	view, _ := amqp.ViewProperties(m.Properties) // they were read when it came
	keys := message.MarksOf(view.Headers)&message.KeyMarks != 0
	targets, _ := ways.Find(vh.VHost, []byte(m.Exchange), []byte(m.RoutingKey), topology.ByClient, topology.Headers{Raw: view.Headers}, keys) // none: it is parked
	return targets
}
