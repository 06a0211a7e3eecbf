package broker

import (
	"encoding/binary"
	"strconv"

	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// shows are what a queue's deliveries tell their receivers beside what was published. What
// is stored, dead-lettered and shown by Browse stays as it was published.
type shows uint8

const (
	showDeadline  shows = 1 << iota // x-delivery-deadline: the headers below
	showRemaining                   // x-remaining-expiration: the expiration property is what is left
)

// Headers of a delivery, Unix ms of the wall clock. Those that a publisher has set under
// these names are left out: a receiver may believe them.
const (
	shownExpiresAt   = expiresAtHeader  // when it expires, if nobody holds it then; none: never
	shownEnqueuedAt  = "x-enqueued-at"  // when it entered the queue; none: it is not known
	shownLockedUntil = "x-locked-until" // when its lock lapses; none: it has no lock
	shownLockToken   = "x-lock-token"   // names that lock (RenewLock); none: it has no lock
)

// show writes the properties that the receiver is to see, in the place of those that were
// published, into the step's scratch.
//
// What is left of a time to live is rounded up, and is 1 at least. It counts anew where it is
// published next, and early is never: rounded down, a message with less than a millisecond
// left would carry 0, which some brokers take for no expiration at all and others for one
// that has come. The instants are rounded up as everywhere, so that the times to live that
// were given can be read off them, but for the lock's, which is rounded down: who trusts in
// it holds it still.
//
// locked: it was not settled as it was taken. Called with q.mu held.
func (s *step) show(q *Queue, what shows, of *queue.Delivery, locked bool, properties []byte) []byte {
	view, err := amqp.ViewProperties(properties)
	if err != nil { // it was read when it came
		return properties
	}
	headers, expiration := view.Headers, view.Expiration
	if what&showDeadline != 0 {
		s.headers = s.appendShown(s.headers[:0], q, of, locked, headers)
		headers = s.headers
	}
	if what&showRemaining != 0 {
		expiration = nil
		if of.ExpiresAt != 0 {
			s.text = strconv.AppendInt(s.text[:0], max(millis(of.ExpiresAt-s.now), 1), 10)
			expiration = s.text
		}
	}
	s.shown = view.With(s.shown[:0], properties, headers, expiration)
	return s.shown
}

// appendShown appends a table: the entries of another, without those that only the broker
// may set, and then these.
func (s *step) appendShown(b []byte, q *Queue, of *queue.Delivery, locked bool, headers []byte) []byte {
	b, start := amqp.OpenTable(b)
	for f := amqp.WalkTable(headers); f.Next(); {
		switch string(f.Name) {
		case shownExpiresAt, shownEnqueuedAt, shownLockedUntil, shownLockToken:
		default:
			b = f.AppendTo(b)
		}
	}
	if of.ExpiresAt != 0 {
		b = appendMillis(b, shownExpiresAt, s.b.UnixMillis(of.ExpiresAt))
	}
	if at := q.enqueued.at(of.Seq); at != 0 {
		b = appendMillis(b, shownEnqueuedAt, s.b.UnixMillis(at))
	}
	if k := q.locks.find(of.Seq); k != nil && locked {
		b = appendMillis(b, shownLockedUntil, s.b.lockedMillis(k.until))
		s.text = k.appendToken(s.text[:0], q)
		b = appendText(b, shownLockToken, s.text)
	}
	return amqp.CloseTable(b, start)
}

func appendMillis(b []byte, name string, unixMillis int64) []byte {
	return binary.BigEndian.AppendUint64(amqp.AppendKey(b, name, 'l'), uint64(unixMillis))
}
