package broker

import (
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// under is what holds where the arguments ask for s and policies for d: of two
// limits the lower, else what was declared (RabbitMQ: Policies). name is the queue's. A
// dead-letter queue stays as long as its queue does, and parked messages do not go because
// nobody looks at them: no policy has either deleted.
func (s settings) under(d policy.Definition, args amqp.Table, name string) settings {
	lower(&s.ttlMillis, d, "message-ttl", -1)
	if !s.keeps && name != UndeliverableQueue {
		lower(&s.expiresMillis, d, "expires", 0)
	}
	lower(&s.timeoutMillis, d, "consumer-timeout", 0)
	lower(&s.core.MaxLength, d, "max-length", -1)
	lower(&s.core.MaxBytes, d, "max-length-bytes", -1)
	if IsNever(s.ttlMillis) {
		s.ttlMillis = -1
	}
	if IsNever(s.expiresMillis) {
		s.expiresMillis = 0
	}
	s.ttlMillis, s.expiresMillis = min(s.ttlMillis, MaxTTLMillis), min(s.expiresMillis, MaxTTLMillis)
	if dlx, ok := d.Text("dead-letter-exchange"); ok && !s.deadLetter {
		s.dlx, s.deadLetter = dlx, true
	}
	if dlk, ok := d.Text("dead-letter-routing-key"); ok && !s.ownKey {
		s.dlk, s.ownKey = dlk, true
	}
	if name, ok := d.Text("ttl-precedence"); ok && args["x-ttl-precedence"] == nil {
		s.precedence, _ = ParsePrecedence(name)
	}
	if mode, ok := d.Text("overflow"); ok && args["x-overflow"] == nil {
		s.core.Overflow = s.kind.overflow(mode)
	}
	if show, ok := d.Bool("remaining-expiration"); ok && show && args["x-remaining-expiration"] == nil {
		s.shows |= showRemaining
	}
	if s.kind == Quorum {
		s.quorumUnder(d, args)
	}
	s.serviceBusUnder(d, args, name)
	s.useSubqueue()
	return s
}

// serviceBusUnder is the part of under that RabbitMQ knows nothing of. Only locks are for a
// dead-letter queue, too, since nothing is dead-lettered from it.
func (s *settings) serviceBusUnder(d policy.Definition, args amqp.Table, name string) {
	lower(&s.lockMillis, d, "lock-duration", 0)
	if s.keeps {
		return
	}
	if name != UndeliverableQueue {
		lower(&s.idleMillis, d, "auto-delete-on-idle", 0)
	}
	if args["x-dead-letter-queue"] == nil && name != UndeliverableQueue && len(name+subqueueSuffix) <= 255 {
		if s.hasSubqueue, _ = d["dead-letter-queue"].(bool); s.hasSubqueue {
			s.subqueue = name + subqueueSuffix
		}
	}
	lower(&s.maxDeliveries, d, "max-delivery-count", 0)
	if s.maxDeliveries == 0 {
		return
	}
	byDefault := s.kind == Quorum && args["x-delivery-limit"] == nil && d["delivery-limit"] == nil
	if limit := s.maxDeliveries - 1; byDefault || s.core.DeliveryLimit < 0 || limit < s.core.DeliveryLimit {
		s.core.DeliveryLimit = limit // so many may fail and it is delivered once more
	}
}

// quorumUnder is the part of under that only quorum queues have.
func (s *settings) quorumUnder(d policy.Definition, args amqp.Table) {
	if n, ok := d.Integer("delivery-limit"); ok && args["x-delivery-limit"] == nil {
		s.core.DeliveryLimit = max(n, -1) // in place of the default, be it higher
	} else {
		lower(&s.core.DeliveryLimit, d, "delivery-limit", -1)
	}
	strategy, declared := args["x-dead-letter-strategy"].(string)
	if !declared {
		strategy, _ = d.Text("dead-letter-strategy")
	}
	s.atLeastOnce = strategy == "at-least-once" && s.deadLetter && s.core.Overflow == queue.RejectPublish
}

// lower bounds a limit by a policy's. Up to none, a value sets no limit.
func lower(value *int64, d policy.Definition, key string, none int64) {
	if bound, ok := d.Integer(key); ok && bound > none && (*value <= none || bound < *value) {
		*value = bound
	}
}

// overflow is the mode of that name. A quorum queue takes reject-publish-dlx for
// the default, as RabbitMQ does.
func (t QueueType) overflow(mode string) queue.Overflow {
	switch {
	case mode == "reject-publish":
		return queue.RejectPublish
	case mode == "reject-publish-dlx" && t == Classic:
		return queue.RejectPublishDLX
	}
	return queue.DropHead
}
