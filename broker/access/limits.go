package access

import (
	"fmt"
	"maps"
	"slices"
)

// Limits holds the limits of a user or a virtual host by RabbitMQ's names. A negative value
// means no limit, like an absent one.
type Limits map[string]int

// What can be limited: connections of users and of virtual hosts, channels of users, queues
// of virtual hosts.
const (
	MaxConnections = "max-connections"
	MaxChannels    = "max-channels"
	MaxQueues      = "max-queues"
)

// Of returns the limit of that name, or false if there is none.
func (l Limits) Of(name string) (int, bool) {
	n, ok := l[name]
	return n, ok && n >= 0
}

// Reached reports whether one more would exceed the limit, if there are count now.
func (l Limits) Reached(name string, count int) (limit int, reached bool) {
	limit, ok := l.Of(name)
	return limit, ok && count >= limit
}

// CheckVHost reports whether a virtual host may have these limits. The error wraps
// ErrInvalid.
func (l Limits) CheckVHost() error { return l.check("vhost", MaxConnections, MaxQueues) }

func (l Limits) check(of string, known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(l)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%w: %s limit %q is not known", ErrInvalid, of, name)
		}
	}
	return nil
}
