package broker

import (
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/policy"
)

// DefaultIdleMinimum is the least AutoDeleteOnIdle of Service Bus.
const DefaultIdleMinimum = 5 * time.Minute

// idle reads x-auto-delete-on-idle; 0 is none.
func (p *argParser) idle() int64 {
	n := p.span("x-auto-delete-on-idle", 0, 1)
	if n != 0 && n < p.vh.b.idleMinimum() {
		p.fail("x-auto-delete-on-idle", fmt.Sprintf("{value_too_small,%d}", n))
		return 0
	}
	return n
}

// idleMinimum is Options.IdleMinimum in ms, rounded up.
func (b *Broker) idleMinimum() int64 {
	return (b.opts.IdleMinimum + time.Millisecond - 1).Milliseconds()
}

// checkIdle holds a policy to the minimum, as arguments are.
func (b *Broker) checkIdle(d policy.Definition) error {
	n, set := d.Integer("auto-delete-on-idle")
	if least := b.idleMinimum(); set && n < least {
		return &policy.Invalid{Problems: []string{fmt.Sprintf("%d is not a valid idle period: the least is %d", n, least)}}
	}
	return nil
}

// use notes that q was used, for x-expires: it has the full period again, or
// for as long as it has consumers no end at all. It also counts for
// x-auto-delete-on-idle, for which publishing, settling and browsing do, too
// (stir). Called with q.mu held.
func (q *Queue) use() {
	q.idleAt = 0
	if q.deleted || q.consumers.count > 0 {
		return
	}
	stamp := q.vh.b.clock.stampAt()
	q.stir(stamp)
	if expires := q.set().expiresMillis; expires != 0 {
		q.idleAt = stamp + expires*milli
	}
	if at := q.lapsesAt(); at != 0 {
		q.vh.b.alarms.add(q, at)
	}
}

// update notes that a policy changed what holds for q, which is use for
// x-auto-delete-on-idle. Called with q.mu held.
func (q *Queue) update() {
	q.stir(q.vh.b.clock.stampAt())
	if at := q.lapsesAt(); at != 0 && !q.deleted {
		q.vh.b.alarms.add(q, at)
	}
}

// stir notes that something was done with q that does not count for x-expires. The
// alarm finds that out when the old time comes. Called with q.mu held.
func (q *Queue) stir(now int64) { q.stirredAt = now }

// lapsesAt is when q is deleted unless it is used before; 0: not for that reason, or it
// is being judged whether it is. Called with q.mu held.
func (q *Queue) lapsesAt() int64 {
	at := q.idleAt
	if idle := q.set().idleMillis; idle != 0 && q.consumers.count == 0 && !q.judged {
		if lapse := q.stirredAt + idle*milli; at == 0 || lapse < at {
			at = lapse
		}
	}
	return at
}

// lastUse is when q was used last, as x-auto-delete-on-idle counts it: now, while somebody
// consumes from it.
func (q *Queue) lastUse(now int64) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.consumers.count > 0 {
		return now
	}
	return q.stirredAt
}

// heedSubqueue has the use of the queue beside q count for q: it is a part of it, which
// cannot be managed by itself (Service Bus: Overview of dead-letter queues). What arrives
// there is no use.
func (q *Queue) heedSubqueue() {
	if q.set().idleMillis == 0 {
		return
	}
	if beside := q.vh.subqueueOf(q); beside != nil {
		used := beside.lastUse(q.vh.b.Now())
		q.mu.Lock()
		defer q.mu.Unlock()
		q.stir(max(q.stirredAt, used))
	}
}

// expireIdle deletes q if it was unused for its x-expires or x-auto-delete-on-idle. It
// does not wait for the disk.
func (q *Queue) expireIdle() bool {
	messages := 0
	_, err := q.vh.drop(q, func() error {
		if at := q.lapsesAt(); at == 0 || at > q.vh.b.Now() {
			return errInUse
		}
		messages = q.core.Len() + len(q.retained.line)
		return nil
	})
	if err != nil {
		return false
	}
	if q.durable() {
		q.vh.b.saveDeletedSoon()
	}
	q.vh.b.log.Info("queue expired: unused for its x-expires or x-auto-delete-on-idle",
		zap.String("vhost", q.vh.name), zap.String("queue", q.name), zap.Int("messages", messages))
	return true
}

// idlers are the queues and exchanges of a virtual host whose x-auto-delete-on-idle has run
// out while messages are delayed. One that waits to be enqueued in a queue, or to pass
// through an exchange, counts as use of it (Service Bus: AutoDeleteOnIdle; RabbitMQ's
// x-expires knows nothing of the kind), and which those are is known only by routing it. So
// one look at all delayed messages judges what has gathered, in a goroutine of its own that
// there is only meanwhile: alarms do not wait for it, and publishing keeps no index for it.
//
// None is missed: one that is due stands in the line of letters until it has arrived,
// which is use, and publishing one is use, too (await).
type idlers struct {
	mu        sync.Mutex // leaf
	queues    []*Queue
	exchanges []*Exchange
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
func await(targets []target, now int64) {
	for i := range targets {
		if q := targets[i].queue; q.set().idleMillis != 0 {
			q.mu.Lock()
			q.stir(now)
			q.mu.Unlock()
		}
	}
}

// lapses says whether x-auto-delete-on-idle, and not x-expires, has run out for q; then
// it is for judge to decide.
func (q *Queue) lapses() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.vh.b.Now()
	if at := q.lapsesAt(); q.deleted || at == 0 || at > now || q.idleAt != 0 && q.idleAt <= now {
		return false
	}
	q.judged = true
	return true
}

// judge has a queue or exchange judged that lapses.
func (vh *VHost) judge(q *Queue, x *Exchange) {
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
}

// take returns those to be judged now, or ends the judging: then awaited is nil.
func (i *idlers) take() (awaited map[*Queue]bool, exchanges []*Exchange) {
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
			q.judge(is)
		}
		for _, x := range exchanges {
			x.expireIdle()
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
	var ways routes
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
				for _, t := range page[i].targets(vh, &ways) {
					if is, judged := awaited[t.queue]; judged && !is {
						awaited[t.queue] = true
						left--
					}
				}
			}
		}
	}
	return true
}

// targets are where the message would go if it were due now.
func (m *DelayedMessage) targets(vh *VHost, ways *routes) []target {
	view, _ := amqp.ViewProperties(m.Properties) // they were read when it came
	keys := marksOf(view.Headers)&keyMarks != 0
	targets, _ := ways.find(vh, []byte(m.Exchange), []byte(m.RoutingKey), byClient, messageHeaders{raw: view.Headers}, keys) // none: it is parked
	return targets
}

// judge deletes q, or lets it have its period again: a delayed message is bound for it,
// or it was used meanwhile.
func (q *Queue) judge(awaited bool) {
	q.mu.Lock()
	q.judged = false
	if awaited {
		q.stir(q.vh.b.Now())
	}
	q.mu.Unlock()
	q.heedSubqueue()
	if q.expireIdle() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := q.lapsesAt(); at != 0 && !q.deleted {
		q.vh.b.alarms.add(q, at)
	}
}
