package queueargs

import (
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// WithPolicy returns the settings of a queue whose arguments give s and whose policies give d:
// the lower of two limits, otherwise what was declared (RabbitMQ: Policies). name is the
// queue's. No policy deletes a dead-letter sub-queue, which exists as long as its queue, or
// UndeliverableQueue: its messages must not be lost because nobody looks at them.
func (s Settings) WithPolicy(d policy.Definition, args amqp.Table, name string) Settings {
	Bound(&s.TTLMillis, d, "message-ttl", -1)
	if !s.Keeps && name != UndeliverableQueue {
		Bound(&s.ExpiresMillis, d, "expires", 0)
	}
	Bound(&s.TimeoutMillis, d, "consumer-timeout", 0)
	Bound(&s.Core.MaxLength, d, "max-length", -1)
	Bound(&s.Core.MaxBytes, d, "max-length-bytes", -1)
	if IsNever(s.TTLMillis) {
		s.TTLMillis = -1
	}
	if IsNever(s.ExpiresMillis) {
		s.ExpiresMillis = 0
	}
	s.TTLMillis, s.ExpiresMillis = min(s.TTLMillis, MaxTTLMillis), min(s.ExpiresMillis, MaxTTLMillis)
	if dlx, ok := d.Text("dead-letter-exchange"); ok && !s.DeadLetters {
		s.DeadLetterExchange, s.DeadLetters = dlx, true
	}
	if dlk, ok := d.Text("dead-letter-routing-key"); ok && !s.HasDeadLetterKey {
		s.DeadLetterKey, s.HasDeadLetterKey = dlk, true
	}
	if name, ok := d.Text("ttl-precedence"); ok && args["x-ttl-precedence"] == nil {
		s.Precedence, _ = ParsePrecedence(name)
	}
	if mode, ok := d.Text("overflow"); ok && args["x-overflow"] == nil {
		s.Core.Overflow = s.Type.overflow(mode)
	}
	if show, ok := d.Bool("remaining-expiration"); ok && show && args["x-remaining-expiration"] == nil {
		s.Shows |= ShowRemaining
	}
	if s.Type == Quorum {
		s.addQuorumPolicy(d, args)
	}
	s.addServiceBusPolicy(d, args, name)
	s.useSubqueue()
	return s
}

// addServiceBusPolicy is the part of WithPolicy that RabbitMQ does not have. A dead-letter
// sub-queue takes only the lock duration, since nothing is dead-lettered from it.
func (s *Settings) addServiceBusPolicy(d policy.Definition, args amqp.Table, name string) {
	Bound(&s.LockMillis, d, "lock-duration", 0)
	if s.Keeps {
		return
	}
	if name != UndeliverableQueue {
		Bound(&s.IdleMillis, d, "auto-delete-on-idle", 0)
	}
	if args["x-dead-letter-queue"] == nil && name != UndeliverableQueue && len(name+SubqueueSuffix) <= 255 {
		if s.HasSubqueue, _ = d.Bool("dead-letter-queue"); s.HasSubqueue {
			s.Subqueue = name + SubqueueSuffix
		}
	}
	Bound(&s.MaxDeliveries, d, "max-delivery-count", 0)
	if s.MaxDeliveries == 0 {
		return
	}
	byDefault := s.Type == Quorum && args["x-delivery-limit"] == nil && d["delivery-limit"] == nil
	if limit := s.MaxDeliveries - 1; byDefault || s.Core.DeliveryLimit < 0 || limit < s.Core.DeliveryLimit {
		s.Core.DeliveryLimit = limit // after this many failures it is delivered once more
	}
}

// addQuorumPolicy is the part of WithPolicy that only quorum queues have.
func (s *Settings) addQuorumPolicy(d policy.Definition, args amqp.Table) {
	if n, ok := d.Integer("delivery-limit"); ok && args["x-delivery-limit"] == nil {
		s.Core.DeliveryLimit = max(n, -1) // in place of the default, even if higher
	} else {
		Bound(&s.Core.DeliveryLimit, d, "delivery-limit", -1)
	}
	strategy, declared := args["x-dead-letter-strategy"].(string)
	if !declared {
		strategy, _ = d.Text("dead-letter-strategy")
	}
	s.AtLeastOnce = strategy == "at-least-once" && s.DeadLetters && s.Core.Overflow == queue.RejectPublish
}

// Bound lowers a limit to a policy's. A value up to none means that there is no limit.
func Bound(value *int64, d policy.Definition, key string, none int64) {
	if bound, ok := d.Integer(key); ok && bound > none && (*value <= none || bound < *value) {
		*value = bound
	}
}

// overflow is the mode of that name. For a quorum queue reject-publish-dlx means the
// default, as in RabbitMQ.
func (t QueueType) overflow(mode string) queue.Overflow {
	switch {
	case mode == "reject-publish":
		return queue.RejectPublish
	case mode == "reject-publish-dlx" && t == Classic:
		return queue.RejectPublishDLX
	}
	return queue.DropHead
}
