package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"curfew/monitor/rabbitmq/cluster"
)

// The names around a queue of retries. On RabbitMQ 3 there is one for each work queue, and its names begin with that one's.
const (
	retryExchange = "retry"
	backSuffix    = ".back"
)

const nativeRetry = "RabbitMQ 4.3 waits just as long by itself, in the work queues (delayed-retry-type, -min, -max): the plan with --emit and --retry sets that up. Workers then nack with requeue."

// retry sets up that what workers reject in some queues waits and comes back, and returns what Curfew reads and writes for that.
//
//	jobs ──dead-letter-exchange──► retry (fanout) ──► retry.delay ──► retry.back (headers) ──x-curfew-to──► jobs, jobs.failed
//	                                                                     ▲  └─alternate-exchange─► retry.undelivered (fanout, and a queue)
//	                                                                     └──────────dead-letter-exchange───────────┘
//
// Curfew makes the last bindings. RabbitMQ 3 knows no x-curfew-to, and jobs has jobs.retry, jobs.retry.delay and jobs.retry.back (fanout) of its own.
func (s *Setup) retry(p *Plan, names []string) (readable, writable []string, err error) {
	for _, name := range names {
		if p.inventory.Queue(name) == nil {
			return nil, nil, fmt.Errorf("retry for queue %s: there is no such queue", name)
		}
	}
	var shared []string // queues with the policy for all
	lead := object{"dead-letter-exchange": retryExchange, "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}
	f := s.family
	for at := range p.inventory.Queues {
		q := &p.inventory.Queues[at]
		prefix := retryExchange
		if f == cluster.Family3 {
			prefix = q.Name + "." + retryExchange
		}
		queue, back := prefix+cluster.DelaySuffix, prefix+backSuffix
		rule, _ := p.watch.Rule(p.VHost, queue)
		present, leads := q.DeadLetterExchange()
		wanted, done := slices.Contains(names, q.Name), leads && present == prefix && rule.Mode == cluster.Retry
		_, declared := q.Arguments["x-dead-letter-exchange"]
		switch {
		case !wanted && !done:
			continue
		case rule.Mode != cluster.Retry:
			return nil, nil, fmt.Errorf("retry for queue %s: no rule with mode retry is for a queue %s: write one with its back-off into the file that CURFEW_WATCH names", q.Name, queue)
		case declared && !done:
			return nil, nil, fmt.Errorf("retry for queue %s: it is declared with x-dead-letter-exchange, which no policy can change: declare it without", q.Name)
		case !done && f == cluster.Family43 && q.Type == cluster.Quorum && rule.Backoff.Linear():
			s.delayedRetry(q, &rule.Backoff)
			continue
		}
		s.waitingRoom(p, prefix, q.Name)
		readable, writable = append(readable, queue, back), append(writable, q.Name, back) // the last for what has to be published
		if f == cluster.Family3 {
			writable = append(writable[:len(writable)-2], "amq.default") // to park
		}
		if park := rule.Backoff.ParkOf(q.Name); park != "" {
			writable = append(writable, park)
			s.declareOnce(p, park)
		}
		limited := q.HasMaxLength()
		switch {
		case f != cluster.Family3 && q.Type == cluster.Quorum && !limited && (len(q.Policy) == 0 || maps.Equal(q.Policy, lead)):
			shared = append(shared, regexp.QuoteMeta(q.Name))
		case done:
		case q.Type == cluster.Quorum && !limited:
			s.setPolicy(q, "dead-letter-strategy", "at-least-once")
			s.setPolicy(q, "overflow", "reject-publish")
			fallthrough
		default:
			s.setPolicy(q, "dead-letter-exchange", prefix)
		}
	}
	if len(names) > 0 && len(shared) > 0 {
		all := oneOf(shared)
		if len(all) > longestPattern {
			return nil, nil, fmt.Errorf("RabbitMQ takes no policy for as many as %d names: set one up whose pattern matches the work queues", len(shared))
		}
		s.policy("curfew."+retryExchange, all, "queues", lead)
	}
	return readable, writable, nil
}

// declareOnce declares a quorum queue unless there is one of the name.
func (s *Setup) declareOnce(p *Plan, name string) {
	if p.inventory.Queue(name) == nil && s.named("queues", s.vhost, name) == nil {
		s.declareQueue(name, object{"x-queue-type": "quorum"})
	}
}

// waitingRoom declares the queue in which messages wait, and what leads there and, on RabbitMQ 3, back to the work queue.
func (s *Setup) waitingRoom(p *Plan, prefix, work string) {
	queue, back, kind := prefix+cluster.DelaySuffix, prefix+backSuffix, "headers"
	if s.family != cluster.Family3 {
		s.catchAll(p, back, prefix+cluster.UndeliveredSuffix)
	}
	if q := p.inventory.Queue(queue); q != nil && q.Policy["dead-letter-exchange"] == back || s.named("exchanges", s.vhost, prefix) != nil {
		return
	}
	s.bind(prefix, queue, "", nil)
	if s.family == cluster.Family3 {
		kind = "fanout"
		s.bind(back, work, "", nil)
	}
	s.exchange(prefix, "fanout")
	s.exchange(back, kind)
	s.declareOnce(p, queue)
	s.policy("curfew."+queue, "^"+regexp.QuoteMeta(queue)+"$", "queues", waiting(s.family, back))
}

// catchAll has what leads to no work queue any more wait elsewhere, where it holds up no other queue's retries: RabbitMQ's at-least-once dead-lettering has 32
// messages of a queue in flight, and tries those that no queue takes every three minutes.
func (s *Setup) catchAll(p *Plan, back, name string) {
	if s.named("exchanges", s.vhost, name) != nil {
		return
	}
	s.exchange(name, "fanout")
	if p.inventory.Queue(name) == nil {
		s.declareQueue(name, object{"x-queue-type": "quorum", "x-message-ttl": 1000, "x-dead-letter-exchange": back, "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"})
	}
	s.bind(name, name, "", nil)
	s.policy("curfew."+back, "^"+regexp.QuoteMeta(back)+"$", "exchanges", object{"alternate-exchange": name})
}

func (s *Setup) exchange(name, kind string) {
	s.add("exchanges", object{"name": name, "vhost": s.vhost, "type": kind, "durable": true, "auto_delete": false, "internal": false, "arguments": object{}})
}

// delayedRetry has RabbitMQ's own delayed retry wait.
func (s *Setup) delayedRetry(q *cluster.Queue, b *cluster.Backoff) {
	s.setPolicy(q, "delayed-retry-type", "all")
	s.setPolicy(q, "delayed-retry-min", b.Steps[0])
	s.setPolicy(q, "delayed-retry-max", b.Steps[len(b.Steps)-1])
	s.note(nativeRetry)
}
