package policy

import (
	"fmt"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// UndeliverableQueue is the queue in which dead letters without a destination
// are parked. It is made in a virtual host when it is first needed.
const UndeliverableQueue = "curfew.undeliverable"

// SubqueueSuffix ends the name of a dead-letter sub-queue, which x-dead-letter-queue makes
// for its queue (Service Bus: Overview of dead-letter queues). It is as durable and exclusive
// as its queue, is deleted with it, and nothing expires in it. Dead letters go there if
// neither an argument nor a policy sets a dead-letter exchange. If the policy that made it no
// longer applies, it stays with its messages and gets no more; it may be deleted by itself,
// and is still deleted with its queue.
const SubqueueSuffix = "/$deadletterqueue"

// DeferredSuffix ends the name of the queue with the deferred messages of another (Service Bus: Message deferral),
// which is deleted with it.
const DeferredSuffix = "/$deferred"

// DeferredArgs are the arguments in which the queue with the deferred messages of another follows that one; nil: it has none.
func (s *Settings) DeferredArgs() amqp.Table {
	args := amqp.Table{"x-max-delivery-count": nil, DeadLetterExpiredArg: nil}
	if s.LockMillis > 0 { // without a lock nobody could settle its messages
		args["x-lock-duration"] = s.LockMillis
	}
	if s.MaxDeliveries > 0 {
		args["x-max-delivery-count"] = s.MaxDeliveries
	}
	if s.DropsExpired {
		args[DeadLetterExpiredArg] = false
	}
	return args
}

// SubqueueArgs are the arguments in which the dead-letter sub-queue of a queue follows it (Service Bus: locks of dead letters); nil: in
// none. Without x-delivery-deadline nobody would learn of its locks.
func (s *Settings) SubqueueArgs() amqp.Table {
	if s.LockMillis == 0 || s.Shows&ShowDeadline == 0 {
		return nil
	}
	return amqp.Table{"x-lock-duration": s.LockMillis, "x-delivery-deadline": true}
}

// IsSubqueue reports whether a name is that of a dead-letter sub-queue, with the suffix in any
// case, as in Service Bus. The sub-queue's own name has it in lower case.
func IsSubqueue[T string | []byte](name T) bool {
	at := len(name) - len(SubqueueSuffix)
	return at >= 0 && name[at] == '/' && strings.EqualFold(string(name[at:]), SubqueueSuffix)
}

// Canonical is the name of the queue that a client calls name.
func Canonical(name string) string {
	if !IsSubqueue(name) {
		return name
	}
	return name[:len(name)-len(SubqueueSuffix)] + SubqueueSuffix
}

// NameSubqueue sets what follows from the name of the queue: whether it is a sub-queue, and the
// name of its own sub-queue.
func (s *Settings) NameSubqueue(label, name string) error {
	s.Keeps = strings.HasSuffix(name, SubqueueSuffix)
	if !s.HasSubqueue {
		return nil
	}
	s.Subqueue = name + SubqueueSuffix
	if n := len(s.Subqueue); n > 255 {
		s.HasSubqueue = false
		return badArg("x-dead-letter-queue", label, fmt.Sprintf("{too_long,%d}", n))
	}
	return nil
}

// UseSubqueue sends dead letters to the sub-queue, unless a dead-letter exchange is set.
func (s *Settings) UseSubqueue() {
	if s.HasSubqueue && !s.DeadLetters {
		s.DeadLetters, s.DeadLetterExchange, s.DeadLetterKey, s.HasDeadLetterKey = true, "", s.Subqueue, true
	}
}

// DeadLetterExpiredArg is false for a queue whose expired messages are dropped, though others are
// dead-lettered (Service Bus: dead-lettering on message expiration).
const DeadLetterExpiredArg = "x-dead-lettering-on-message-expiration"

// SetsDeadLetterReason reports whether a dead letter gets headers with the reason, as in Service Bus.
func (s *Settings) SetsDeadLetterReason(r queue.Reason) bool {
	return s.HasSubqueue || s.DeadLetterExchange == "" && IsSubqueue(s.DeadLetterKey) || r == queue.DeliveryLimit && s.MaxDeliveries > 0
}
