package queueargs

import (
	"fmt"
	"strings"

	"curfew/broker/queue"
)

// UndeliverableQueue is the queue in which dead letters without a destination
// are parked; made in a virtual host when first needed.
const UndeliverableQueue = "curfew.undeliverable"

// subqueueSuffix ends the name of the queue that x-dead-letter-queue makes beside
// its queue (Service Bus: Overview of dead-letter queues). That queue is as durable
// and exclusive as its queue, is deleted with it, and nothing expires in it; dead
// letters go there when no dead-letter exchange is set, neither by argument nor by
// policy. Where a policy made it and no longer applies, it stays with what is in it, gets
// no more, may be deleted by itself, and still goes with its queue.
const SubqueueSuffix = "/$deadletterqueue"

// IsSubqueue reports whether a name is that of a queue which x-dead-letter-queue makes, in
// any case of the last part, as in Service Bus. Such a queue's own is in lower case.
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

// NameSubqueue settles what the name of the queue means for it.
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

// useSubqueue has dead letters go to the queue beside, if nothing else was said.
func (s *Settings) useSubqueue() {
	if s.HasSubqueue && !s.DeadLetters {
		s.DeadLetters, s.DeadLetterExchange, s.DeadLetterKey, s.HasDeadLetterKey = true, "", s.Subqueue, true
	}
}

// Explains reports whether a dead letter is to say why it is one in Service Bus's words.
func (s *Settings) Explains(r queue.Reason) bool {
	return s.HasSubqueue || r == queue.DeliveryLimit && s.MaxDeliveries > 0
}
