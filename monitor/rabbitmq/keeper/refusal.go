package keeper

import (
	"fmt"

	"curfew/broker/deadline"
)

// harm watches whether messages that are given back at their deadlines expire.
// Each message counts once, and only if its deadline was worked out here.
type harm struct {
	at      deadline.Instant // when the present minute began
	given   int              // messages given back since
	came    int              // messages that have come back since
	excused deadline.Instant // deadlines up to then may have been worked out before the queue's TTL was raised
}

// cameBack notes a message that did not expire at its deadline.
func (h *harm) cameBack(r *remembered) {
	if r.early == 0 && r.flags&doubtful == 0 && r.deadline > h.excused {
		h.came++
	}
}

// judge notes how many messages were given back for the first time. It returns the reason why keeping must end; "" if it need not.
func (h *harm) judge(now deadline.Instant, first int) string {
	if now.Sub(h.at) > harmWithin {
		h.at, h.given, h.came = now, 0, 0
	}
	h.given += first
	if h.came >= harmMessages && 2*h.came > h.given {
		return fmt.Sprintf("%d of %d messages given back at their deadline came back within a minute", h.came, h.given)
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

// exceeded returns the limit that a delivery has exceeded, counting everything held; nil if there is none.
func (cfg *config) exceeded(f Facts, held *heldMessages, m message) *refusal {
	switch most := f.takes(); {
	case most >= 0 && m.returns > most:
		return &refusal{sticky: true, reason: reason{DeliveryLimit, fmt.Sprintf(
			"delivery limit %d: a message has been returned %d times, and no more than a quarter may be spent", f.DeliveryLimit, m.returns)}}
	case held.count > cfg.limit:
		return &refusal{readyBelow: max(1, cfg.limit*8/10), reason: reason{Budget, fmt.Sprintf("more than %d messages", cfg.limit)}}
	case held.bytes > cfg.bytesLimit:
		return &refusal{readyBelow: max(1, held.count*8/10), reason: reason{Budget, fmt.Sprintf("more than %d bytes of messages", cfg.bytesLimit)}}
	case held.count >= judgeShareFor && float64(held.endless) > cfg.endlessMost*float64(held.count):
		return &refusal{sticky: true, reason: reason{FewDeadlines, fmt.Sprintf("not worth keeping: %d of %d messages have no TTL", held.endless, held.count)}}
	}
	return nil
}
