package keeper

import (
	"fmt"

	"curfew/broker/deadline"
)

// refusal is why nothing is held, and what ends that, apart from a change of the facts.
type refusal struct {
	reason
	readyBelow int              // until fewer are ready; 0 does not apply
	retryAt    deadline.Instant // until then; 0 does not apply
}

// exceeded returns the limit that a delivery has exceeded, counting everything held; nil if there is none.
func (cfg *config) exceeded(f Facts, held *heldMessages, m message) *refusal {
	switch most := f.takes(); {
	case most >= 0 && m.returns > most:
		return &refusal{readyBelow: 1, reason: reason{DeliveryLimit, fmt.Sprintf(
			"delivery limit %d: a message has been returned %d times, and no more than a quarter may be spent", f.DeliveryLimit, m.returns)}}
	case held.count > cfg.limit:
		return &refusal{readyBelow: max(1, cfg.limit*8/10), reason: reason{Budget, fmt.Sprintf("more than %d messages", cfg.limit)}}
	case held.bytes > cfg.bytesLimit:
		return &refusal{readyBelow: max(1, held.count*8/10), reason: reason{Budget, fmt.Sprintf("more than %d bytes of messages", cfg.bytesLimit)}}
	case held.count >= judgeShareFor && float64(held.endless) > cfg.endlessMost*float64(held.count):
		return &refusal{readyBelow: judgeShareFor / 2, reason: reason{FewDeadlines, fmt.Sprintf("not worth keeping: %d of %d messages have no TTL", held.endless, held.count)}}
	}
	return nil
}
