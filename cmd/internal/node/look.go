package node

import (
	"cmp"
	"net"
	"strconv"
	"sync"
	"time"

	"curfew/broker"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/broker/policy"
	"curfew/monitor/incident"
)

// looker looks at a node for what conditions are judged by, and remembers what one look cannot tell.
type looker struct {
	trends
	limits []*connLimit // of the HTTP servers

	mu      sync.Mutex // purposes are asked for by others, too
	targets queueSet   // where dead letters lead
	at      time.Time  // when that was looked up
	opened  time.Time  // the node
	earlier queueSet   // the queues that there were at the first look, until clientsReturn is over
}

// look fills in what the conditions are judged by. It is called by one goroutine at a time.
func (l *looker) look(n *Node, s *incident.State) {
	l.opened = n.openedAt
	n.lookAtMonitor(s)
	n.primary.look(s)
	if n.deadManSwitch != nil {
		s.HeartbeatSilent = n.deadManSwitch.Silent()
	}
	if n.audit != nil {
		s.Lost = append(s.Lost, incident.Loss{Condition: "audit_incomplete", Total: n.audit.Lost()})
	}
	s.OpenFiles = l.openFiles()
	for _, c := range l.limits {
		if most, is := c.refuses(); is {
			s.Refusals = append(s.Refusals, incident.Refusal{What: c.name, Most: most})
		}
	}
}

func (n *Node) lookAtMonitor(s *incident.State) {
	if n.monitor == nil {
		s.Unwatched = n.settings.TTL != "off"
		return
	}
	h := n.monitor.Health()
	s.Stalled, s.Lag, s.Orphans, s.Schedule, s.Redis = h.Stalled, h.Lag, h.Orphans, h.Down, h.Reasons[:len(h.Reasons)-len(h.Stalled)]
	late := n.monitor.LatenessWithin(incident.LateWithin)
	s.LateShare, s.ClockSkew = late.Share(), h.ClockSkew
	s.Silent = time.Since(h.LastTick)
	if h.LastTick.Before(n.openedAt) {
		s.Silent = time.Since(n.openedAt)
	}
	s.Lost = append(s.Lost, incident.Loss{Condition: "loop_restarted", Total: h.Restarts})
	for _, w := range n.monitor.Waits() {
		if w.Burns {
			s.Objectives = append(s.Objectives, incident.Missed{QueueName: incident.QueueName{VHost: w.VHost, Name: w.Queue}, Wait: w.Wait})
		}
	}
	now := n.primary.nowMillis()
	for _, f := range n.monitor.Forecasts() {
		if f.AtRisk {
			s.AtRisk = append(s.AtRisk, incident.Risk{
				QueueName: incident.QueueName{VHost: f.VHost, Name: f.Queue}, Count: int64(f.WillMiss), FirstAt: f.FirstMiss, Reason: f.Reason(now),
			})
		}
	}
}

// look implements primary.
func (o *ownBroker) look(s *incident.State) {
	b, l := o.broker, &o.n.looker
	l.mu.Lock()
	if l.earlier == nil {
		l.earlier = queuesOf(b)
	} else if time.Since(l.opened) >= clientsReturn {
		clear(l.earlier)
	}
	l.mu.Unlock()
	s.Blocked, _ = b.BlockedReason()
	s.DiskSilent, s.Unsaved, s.Recovered, s.ClockAhead = b.DiskSilent(), b.Unsaved(), b.Adopted(), b.ClockOffset()
	signs := broker.SignsOf(b)
	s.Letters, s.IdlePolicies = signs.LettersWaiting, signs.PoliciesNotInForce
	s.Lost = append(s.Lost, incident.Loss{Condition: "dead_letters_dropped", Total: signs.LettersDropped})
	s.DiskFullIn = l.diskFullIn(time.Now(), signs.DiskFree, signs.DiskLimit)
	s.SlowSyncs = l.slowSyncs()
	s.Held = o.holders()
	for _, p := range o.parked() {
		s.Parked = append(s.Parked, incident.Depth{QueueName: incident.QueueName{VHost: p.VHost, Name: policy.UndeliverableQueue}, Count: p.Messages})
	}
	if most, last := o.server.Full(); !last.IsZero() && time.Since(last) <= refusedRecently {
		s.Refusals = append(s.Refusals, incident.Refusal{What: "AMQP", Most: most})
	}
	s.Purposes = l.purposes(b, s)
}

// holders are the consumers that hold messages past their deadlines now.
func (o *ownBroker) holders() (list []incident.PastDeadline) {
	for _, h := range o.server.UnackedHolders(func(*broker.Queue) bool { return true }) {
		if h.PastDeadline == 0 {
			continue
		}
		list = append(list, incident.PastDeadline{
			QueueName: incident.QueueName{VHost: h.Queue.VHost().Name(), Name: h.Queue.Name()}, Connection: cmp.Or(operate.ClientOf(h.Properties).Name, h.Connection), User: h.User,
			Address: net.JoinHostPort(h.PeerHost, strconv.Itoa(h.PeerPort)), Count: h.PastDeadline, FirstDeadlineAt: time.Now().Add(-o.broker.Now().Sub(h.Earliest)).UnixMilli(),
		})
	}
	return list
}

// purposes are those of the queues that conditions are about, without those for work.
func (l *looker) purposes(b *broker.Broker, s *incident.State) map[incident.QueueName]deadline.Purpose {
	of := make(map[incident.QueueName]deadline.Purpose)
	add := func(at incident.QueueName) {
		if _, known := of[at]; known {
			return
		}
		of[at] = deadline.Work
		if vh, ok := b.VHost(at.VHost); ok {
			if q, err := vh.Queues.Get(at.Name); err == nil && !q.Settings().Objective.NoneExpires() {
				of[at] = l.purpose(b, q)
			}
		}
	}
	for i := range s.Tallies {
		add(incident.QueueName{VHost: s.Tallies[i].VHost, Name: s.Tallies[i].Queue})
	}
	for i := range s.AtRisk {
		add(s.AtRisk[i].QueueName)
	}
	return of
}

// clientsReturn is how long after the start a queue of an earlier run may be without its consumers: until then it counts as consumed.
const clientsReturn = 30 * time.Second

// purpose is what a queue is for, by its arguments, its policies and what leads where. Safe for concurrent use.
func (l *looker) purpose(b *broker.Broker, q *broker.Queue) deadline.Purpose {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := incident.QueueName{VHost: q.VHost().Name(), Name: q.Name()}
	vh, ok := b.VHost(of.VHost)
	if !ok {
		return deadline.Work
	}
	info, set := q.Info(), q.Settings()
	if set.Purpose != 0 {
		return set.Purpose
	}
	f := deadline.QueueFacts{
		Name: info.Name, Exclusive: info.Exclusive, AutoDelete: info.AutoDelete, TTL: info.TTLMillis >= 0, Bounded: set.Limited(),
		DeadLetters: set.DeadLetters, Consumers: info.Consumers, Delivered: info.Stats.AllDelivered(),
		Collects: of.Name == policy.UndeliverableQueue || l.deadLetterTargets(b).has(of),
	}
	if exchange, key, ok := q.DeadLettersTo(); ok && exchange == "" && key == "" {
		// Each goes back to the queue that its routing key names. Here that makes sense only for retries.
		f.Target, f.Consumed, f.Onward = true, true, true
	}
	returning := l.earlier.has(of) && time.Since(l.opened) < clientsReturn
	for _, target := range targetsOf(vh, q) {
		f.Target = true
		if about := target.Info(); about.Consumers > 0 || about.Stats.AllDelivered() > 0 || returning {
			f.Consumed = true
		}
		f.Onward = f.Onward || target.Settings().DeadLetters
	}
	return deadline.PurposeOf(f)
}

// targetsOf are the queues that the dead letters of q lead to.
func targetsOf(vh *broker.VHost, q *broker.Queue) (list []*broker.Queue) {
	exchange, key, ok := q.DeadLettersTo()
	if !ok {
		return nil
	}
	add := func(name string) {
		if target, err := vh.Queues.Get(name); err == nil && target != q {
			list = append(list, target)
		}
	}
	if exchange == "" {
		add(key)
		return list
	}
	about, err := vh.Exchanges.Get(exchange)
	if err != nil {
		return nil
	}
	for _, b := range vh.BindingsWhere(func(b *broker.Binding) bool { return b.Source == exchange && !b.ToExchange }) {
		if about.Kind != "direct" || key == "" || b.RoutingKey == key {
			add(b.Destination)
		}
	}
	return list
}

// queueSet is a set of queues.
type queueSet map[incident.QueueName]struct{}

func (t queueSet) has(q incident.QueueName) bool {
	_, is := t[q]
	return is
}

// queuesOf are all queues of a broker.
func queuesOf(b *broker.Broker) queueSet {
	all := make(queueSet)
	for _, vh := range b.VHosts() {
		for _, q := range vh.Queues.List() {
			all[incident.QueueName{VHost: vh.Name(), Name: q.Name()}] = struct{}{}
		}
	}
	return all
}

// targetsEvery is how often it is looked up again where dead letters lead.
const targetsEvery = 10 * time.Second

// deadLetterTargets are those of all queues, as they were a moment ago.
func (l *looker) deadLetterTargets(b *broker.Broker) queueSet {
	if l.targets != nil && time.Since(l.at) < targetsEvery {
		return l.targets
	}
	l.targets, l.at = make(queueSet), time.Now()
	for _, vh := range b.VHosts() {
		for _, q := range vh.Queues.List() {
			for _, target := range targetsOf(vh, q) {
				l.targets[incident.QueueName{VHost: vh.Name(), Name: target.Name()}] = struct{}{}
			}
		}
	}
	return l.targets
}
