package message

import (
	"time"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
)

// Named reads the headers that policies name: deadline-header and delay-header. It is made for one
// message; nil: the message has no headers. Not safe for concurrent use.
type Named struct {
	Headers amqp.Table
	Now     deadline.Instant
	Ahead   time.Duration // how far the broker's clock is ahead of the wall clock
	Moved   bool          // the message is moved to another queue: a deadline that has passed counts as none

	name string // of the header that was read last, and what it says
	at   deadline.Instant
	err  error
}

// Deadline reads an absolute deadline: an AMQP timestamp, an integer of Unix ms, or text in the
// form of ISO 8601, in UTC if it has no offset. 0: the header is absent or void, or name is "".
// Error: 406.
func (n *Named) Deadline(name string) (deadline.Instant, error) {
	if n == nil || name == "" {
		return 0, nil
	}
	if n.name != name {
		n.name = name
		n.at, n.err = n.instant(name)
	}
	if n.Moved && n.at <= n.Now {
		return 0, n.err
	}
	return n.at, n.err
}

// Earlier is the absolute deadline of a message in a queue, which may name a header with one: the
// earlier of that and own, the message's own. 0: none. A header that cannot be read counts as absent.
func (n *Named) Earlier(own deadline.Instant, in *policy.Settings) deadline.Instant {
	if n != nil {
		if at, _ := n.Deadline(in.Names().DeadlineHeader); at != 0 && (own == 0 || at < own) {
			return at
		}
	}
	return own
}

// Due reads when a message is to be enqueued: an absolute instant as Deadline reads it, or a number
// of ms from stamp, the present instant rounded up, also as text. An integer above ten years is an
// instant. 0: now, or the header is absent or void. Error: 406.
func (n *Named) Due(name string, stamp deadline.Instant) (due deadline.Instant, err error) {
	if n == nil || name == "" {
		return 0, nil
	}
	if millis, ok := numberOf(n.Headers[name]); !ok {
		due, err = n.instant(name)
	} else if millis > policy.MaxTTLMillis {
		due, err = InstantOf(amqp.Table{name: millis}, name, n.Now, n.Ahead)
	} else if millis > 0 {
		due = stamp.AddMillis(deadline.Millis(millis))
	}
	if due <= n.Now {
		due = 0
	}
	return due, err
}

func (n *Named) instant(name string) (deadline.Instant, error) {
	switch v := n.Headers[name].(type) {
	case nil:
		return 0, nil
	case string:
		for _, layout := range isoLayouts {
			if t, err := time.Parse(layout, v); err == nil {
				millis := t.Add(time.Millisecond - 1).UnixMilli() // never early
				return InstantOf(amqp.Table{name: millis}, name, n.Now, n.Ahead)
			}
		}
		return 0, badHeader(name, "expected timestamp, integer of milliseconds or a time in ISO 8601, got '"+v+"'")
	}
	return InstantOf(n.Headers, name, n.Now, n.Ahead)
}

// isoLayouts are the forms of ISO 8601 that are read. A fraction of a second may follow in each.
var isoLayouts = [...]string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05"}
