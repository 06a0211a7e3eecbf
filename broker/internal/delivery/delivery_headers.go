package delivery

import (
	"encoding/binary"
	"strconv"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/message"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// Headers of a delivery, in Unix ms of the wall clock. Headers with these names that a publisher
// has set are left out, so that a receiver can trust them.
const (
	headerExpiresAt   = message.ExpiresAtHeader // when it expires, if nobody holds it then; none: never
	headerEnqueuedAt  = "x-enqueued-at"         // when it entered the queue; none: not known
	headerLockedUntil = "x-locked-until"        // when its lock lapses; none: it has no lock
	headerLockToken   = "x-lock-token"          // names that lock (Locks.Renew); none: it has no lock
)

// withHeadersLocked writes the properties that the receiver is to see, in place of those that were
// published, into the transition's scratch memory.
//
// What is left of a time to live is rounded up and is at least 1: where the message is published
// next, it counts from that moment, and a message must not expire early. If it were rounded down,
// a message with less than a millisecond left would carry 0. Some brokers take that for no
// expiration at all, others for one that has come. Instants are rounded up as everywhere, so that
// the original times to live can be read from them. Only the end of a lock is rounded down: until
// then the receiver certainly holds it.
//
// locked: the message was not settled when it was taken.
func (s *Transition) withHeadersLocked(q *Queue, what policy.Shows, of *queue.Delivery, locked bool, properties []byte) []byte {
	view, err := amqp.ViewProperties(properties)
	if err != nil { // it was readable when it was published
		return properties
	}
	headers, expiration := view.Headers, view.Expiration
	if what&policy.ShowDeadline != 0 {
		s.headers = s.appendHeadersLocked(s.headers[:0], q, of, locked, headers)
		headers = s.headers
	}
	if what&policy.ShowRemaining != 0 {
		expiration = nil
		if of.ExpiresAt != 0 {
			s.text = strconv.AppendInt(s.text[:0], max(int64(deadline.RoundUp(of.ExpiresAt.Sub(s.Now))), 1), 10)
			expiration = s.text
		}
	}
	s.properties = view.With(s.properties[:0], properties, headers, expiration)
	return s.properties
}

// appendHeadersLocked appends a table: the entries of headers, except those that only the broker
// may set, and then the broker's own.
func (s *Transition) appendHeadersLocked(b []byte, q *Queue, of *queue.Delivery, locked bool, headers []byte) []byte {
	b, start := amqp.OpenTable(b)
	for f := amqp.WalkTable(headers); f.Next(); {
		switch string(f.Name) {
		case headerExpiresAt, headerEnqueuedAt, headerLockedUntil, headerLockToken:
		default:
			b = append(b, f.Entry...)
		}
	}
	if of.ExpiresAt != 0 {
		b = appendMillis(b, headerExpiresAt, s.Env.Clock.UnixMillis(of.ExpiresAt))
	}
	if at := q.enqueued.at(of.Seq); at != 0 {
		b = appendMillis(b, headerEnqueuedAt, s.Env.Clock.UnixMillis(at))
	}
	if k, ok := q.Locks.table.find(of.Seq); ok && locked {
		b = appendMillis(b, headerLockedUntil, s.Env.Clock.UnixMillisDown(k.until))
		s.text = k.appendToken(s.text[:0], q, of.Seq)
		b = message.AppendText(b, headerLockToken, s.text)
	}
	return amqp.CloseTable(b, start)
}

func appendMillis(b []byte, name string, unixMillis int64) []byte {
	return binary.BigEndian.AppendUint64(amqp.AppendKey(b, name, 'l'), uint64(unixMillis))
}
