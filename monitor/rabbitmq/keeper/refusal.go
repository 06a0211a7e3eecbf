package keeper

import (
	"fmt"

	"curfew/broker/deadline"
)

// harm watches whether messages that are given back at their deadlines expire.
type harm struct {
	at     deadline.Instant // when the present minute began
	given  uint64           // messages given back by then
	before uint64           // messages that had come again by then
}

// judge returns the reason why keeping must end; "" if it need not.
func (h *harm) judge(now deadline.Instant, counts Counts) string {
	if now.Sub(h.at) > harmWithin {
		*h = harm{now, counts.GivenBack, counts.Early}
		return ""
	}
	if early := counts.Early - h.before; early >= harmEarly && 2*early > counts.GivenBack-h.given {
		return fmt.Sprintf("%d of %d messages given back at their deadline came back within a minute", early, counts.GivenBack-h.given)
	}
	return ""
}

// refusal is why nothing is held, and what ends that by itself.
type refusal struct {
	reason
	sticky     bool             // until an operator allows it
	readyBelow int              // until fewer are ready; 0 does not apply
	retryAt    deadline.Instant // until then; 0 does not apply
}

// exceeded returns the limit that a delivery has exceeded, counting everything held; nil if there is none. In a window,
// which holds few messages for a short time, only the delivery limit counts.
func (cfg *config) exceeded(f Facts, held *heldMessages, m message, window bool) *refusal {
	switch most := f.takes(); {
	case most >= 0 && m.returns > most:
		return &refusal{sticky: true, reason: reason{DeliveryLimit, fmt.Sprintf(
			"delivery limit %d: a message has been returned %d times, and no more than a quarter may be spent", f.DeliveryLimit, m.returns)}}
	case window:
	case held.count > cfg.limit:
		return &refusal{readyBelow: max(1, cfg.limit*8/10), reason: reason{Budget, fmt.Sprintf("more than %d messages", cfg.limit)}}
	case held.bytes > cfg.bytesLimit:
		return &refusal{readyBelow: max(1, held.count*8/10), reason: reason{Budget, fmt.Sprintf("more than %d bytes of messages", cfg.bytesLimit)}}
	case held.count >= judgeShareFor && float64(held.endless) > cfg.endlessMost*float64(held.count):
		return &refusal{sticky: true, reason: reason{FewDeadlines, fmt.Sprintf("not worth keeping: %d of %d messages have no TTL", held.endless, held.count)}}
	}
	return nil
}
