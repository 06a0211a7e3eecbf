package access

import (
	"fmt"
	"maps"
	"slices"
)

// Limits of a user or a virtual host by name, as RabbitMQ has them; a negative
// value, as an absent one, is no limit.
type Limits map[string]int

// What can be limited: connections of users and virtual hosts, channels of users,
// queues of virtual hosts.
const (
	MaxConnections = "max-connections"
	MaxChannels    = "max-channels"
	MaxQueues      = "max-queues"
)

// Of returns the limit of that name; false if there is none.
func (l Limits) Of(name string) (int, bool) {
	n, ok := l[name]
	return n, ok && n >= 0
}

// Reached says whether one more, of count there are, would be too many.
func (l Limits) Reached(name string, count int) (limit int, reached bool) {
	limit, ok := l.Of(name)
	return limit, ok && count >= limit
}

// CheckVHost says whether a virtual host can have these limits. The error wraps
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
