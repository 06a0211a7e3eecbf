package policy

import (
	"cmp"
	"slices"
	"strings"
)

// Class is the kind of a queue or exchange, as far as policies distinguish it.
type Class uint8

const (
	ClassicQueue Class = iota
	QuorumQueue
	Stream
	Exchange
)

// unsupported are the keys that keep a whole policy from matching a queue of
// the class, as in RabbitMQ: the next policy that matches then counts.
var unsupported = [...][]string{
	ClassicQueue: {"max-age", "stream-max-segment-size-bytes", "queue-leader-locator", "initial-cluster-size", "delivery-limit", "dead-letter-strategy"},
	QuorumQueue: {"queue-mode", "queue-master-locator", "max-age", "stream-max-segment-size-bytes", "initial-cluster-size",
		"ha-mode", "ha-params", "ha-sync-mode", "ha-promote-on-shutdown", "ha-promote-on-failure"},
	Stream: {"message-ttl", "max-length", "expires", "dead-letter-exchange", "dead-letter-routing-key", "dead-letter-strategy", "overflow",
		"max-in-memory-length", "max-in-memory-bytes", "delivery-limit", "queue-mode", "queue-version",
		"ha-mode", "ha-params", "ha-sync-mode", "ha-promote-on-shutdown", "ha-promote-on-failure", "queue-master-locator"},
	Exchange: nil,
}

// mayApplyTo reports whether the policy may apply to things of a class.
func (p *Policy) mayApplyTo(c Class) bool {
	switch p.ApplyTo {
	case All:
	case Queues:
		if c == Exchange {
			return false
		}
	default:
		if p.ApplyTo != [...]string{ClassicQueues, QuorumQueues, Streams, Exchanges}[c] {
			return false
		}
	}
	for _, key := range unsupported[c] {
		if _, set := p.Definition[key]; set {
			return false
		}
	}
	return true
}

// Set holds the policies of one kind in a virtual host, the ones with precedence first. The
// zero Set is empty. A Set is never changed: With and Without return
// new ones, so that a change can be tried before it is made.
type Set []*Policy

// With adds a policy, or replaces the one of that name. The policy must come from Check or
// Decode.
func (s Set) With(p Policy) Set {
	s = append(s.Without(p.Name), &p)
	slices.SortFunc(s, func(a, b *Policy) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(b.Name, a.Name)) // of equals, RabbitMQ takes any
	})
	return s
}

// Without returns the set without the policy of that name.
func (s Set) Without(name string) Set {
	return slices.DeleteFunc(slices.Clone(s), func(p *Policy) bool { return p.Name == name })
}

// Named returns the policy of that name, or nil.
func (s Set) Named(name string) *Policy {
	for _, p := range s {
		if p.Name == name {
			return p
		}
	}
	return nil
}
