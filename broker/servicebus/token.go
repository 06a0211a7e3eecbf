package servicebus

import (
	"encoding/base64"
	"encoding/binary"

	"curfew/broker/amqp10"
)

// LockToken is a lock as clients of Service Bus name it: the random number of the broker's x-lock-token,
// and the message's sequence number. text is the x-lock-token; "": the message has no lock.
func LockToken(text string, seq uint64) (t amqp10.UUID) {
	var b [24]byte
	if n, err := base64.RawURLEncoding.Decode(b[:], []byte(text)); err == nil && n == len(b) {
		copy(t[:8], b[16:])
	}
	binary.BigEndian.PutUint64(t[8:], seq)
	return t
}

// TokenText is the x-lock-token of a lock in the queue with that incarnation.
func TokenText(queue uint64, t amqp10.UUID) string {
	b := binary.BigEndian.AppendUint64(nil, queue)
	b = append(append(b, t[8:]...), t[:8]...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// DeliveryTag is a lock token in the order of .NET, in which it comes as the tag of its delivery.
func DeliveryTag(t amqp10.UUID) (tag [16]byte) {
	tag = t
	tag[0], tag[1], tag[2], tag[3] = t[3], t[2], t[1], t[0]
	tag[4], tag[5], tag[6], tag[7] = t[5], t[4], t[7], t[6]
	return tag
}
