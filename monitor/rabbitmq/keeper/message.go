package keeper

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

// message is what the keeper keeps of a delivery.
type message struct {
	fingerprint uint64
	ttl         time.Duration    // the message's own; negative is none
	published   deadline.Instant // by the publisher's timestamp, at the latest; 0 is unknown
	returns     int              // x-delivery-count
	size        int
	redelivered bool
}

// read takes what is needed from a delivery.
func read(fingerprints *Fingerprints, d *amqp091.Delivery) message {
	m := message{fingerprint: fingerprints.Of(d), ttl: -1, size: len(d.Body), redelivered: d.Redelivered}
	if ms := cluster.TimeToLive(d.Expiration); ms >= 0 {
		m.ttl = ms.Duration()
	}
	m.published = Published(d)
	if n, ok := Integer(d.Headers["x-delivery-count"]); ok {
		m.returns = int(n)
	}
	return m
}

// Fingerprints knows a message again when RabbitMQ delivers it once more. It is not safe for concurrent use.
type Fingerprints struct {
	hash hash.Hash
	buf  []byte
	sum  [sha256.Size]byte
}

// NewFingerprints returns Fingerprints.
func NewFingerprints() *Fingerprints { return &Fingerprints{hash: sha256.New()} }

// Of returns 64 bits of a hash over everything in a message that stays the same from delivery to delivery. It is the
// same in every process. It has no key: whoever can read Redis can check whether a message that they guess is in the queue.
func (h *Fingerprints) Of(d *amqp091.Delivery) uint64 {
	h.hash.Reset()
	b := h.buf[:0]
	for _, s := range [...]string{d.Exchange, d.RoutingKey, d.ContentType, d.ContentEncoding, d.CorrelationId, d.ReplyTo,
		d.Expiration, d.MessageId, d.Type, d.UserId, d.AppId} {
		b = appendText(b, s)
	}
	b = append(b, d.DeliveryMode, d.Priority)
	b = binary.BigEndian.AppendUint64(b, uint64(d.Timestamp.Unix()))
	b = appendTable(b, d.Headers, true)
	h.buf = b
	h.hash.Write(b)
	h.hash.Write(d.Body)
	return binary.BigEndian.Uint64(h.hash.Sum(h.sum[:0]))
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendTable(b []byte, t amqp091.Table, outer bool) []byte {
	if len(t) == 0 {
		return append(b, 0)
	}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if outer && (name == "x-delivery-count" || name == "x-acquired-count") {
			continue // the broker changes them from delivery to delivery
		}
		b = append(b, 1)
		b = appendValue(appendText(b, name), t[name])
	}
	return append(b, 0)
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case amqp091.Table:
		return appendTable(append(b, 'F'), v, false)
	case []any:
		b = binary.AppendUvarint(append(b, 'A'), uint64(len(v)))
		for _, inner := range v {
			b = appendValue(b, inner)
		}
		return b
	case string:
		return appendText(append(b, 'S'), v)
	case []byte:
		return appendText(append(b, 'x'), string(v))
	case time.Time:
		return binary.BigEndian.AppendUint64(append(b, 'T'), uint64(v.Unix()))
	}
	if n, ok := Integer(v); ok {
		return binary.BigEndian.AppendUint64(append(b, 'I'), uint64(n))
	}
	return appendText(append(b, '?'), fmt.Sprint(v))
}

// Published returns when a message was published, by what it says, at the latest; 0: it does not say.
func Published(d *amqp091.Delivery) deadline.Instant {
	if ms, ok := Integer(d.Headers["timestamp_in_ms"]); ok && ms > 0 && ms < math.MaxInt64/1000 {
		return deadline.FromUnixMilli(ms).AddMillis(1)
	}
	if !d.Timestamp.IsZero() && d.Timestamp.Unix() > 0 {
		return deadline.At(d.Timestamp).Add(time.Second) // it has whole seconds
	}
	return 0
}

// Integer returns the integer in a header; false: the header is not one.
func Integer(v any) (int64, bool) {
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		return r.Int(), true
	case r.CanUint():
		return int64(min(r.Uint(), math.MaxInt64)), true // AMQP 1.0 has ulong
	}
	return 0, false
}
