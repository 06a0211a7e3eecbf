package policy

import "math"

// Precedence says which time to live counts if queue and message both set one.
type Precedence uint8

const (
	// Lower takes the lower of the two (RabbitMQ: Time-To-Live).
	Lower Precedence = iota
	// MessageFirst takes the message's own, as OtterMQ does.
	MessageFirst
)

// ParsePrecedence reads the name of a precedence as in x-ttl-precedence: min or message.
func ParsePrecedence(name string) (p Precedence, ok bool) {
	switch name {
	case "min":
		return Lower, true
	case "message":
		return MessageFirst, true
	}
	return Lower, false
}

// neverMillis stands for never in Service Bus's clients: TimeSpan.MaxValue, in ISO 8601
// P10675199DT2H48M5.4775807S, in whole ms. It is the default there for every time to live and
// for AutoDeleteOnIdle.
const neverMillis = 922_337_203_685_477

// IsNever reports whether a number of ms stands for no time to live: Service Bus's longest
// span or the largest number. RabbitMQ refuses both, as everything above MaxTTLMillis.
func IsNever(millis int64) bool { return millis == neverMillis || millis == math.MaxInt64 }

// EffectiveTTL combines a queue's and a message's time to live, each <0 for none.
func (p Precedence) EffectiveTTL(queueMillis, messageMillis int64) int64 {
	switch {
	case messageMillis < 0:
		return queueMillis
	case queueMillis < 0 || p == MessageFirst:
		return messageMillis
	}
	return min(queueMillis, messageMillis)
}

// LowerTTL is the lower of two times to live, each <0 for none.
func LowerTTL(a, b int64) int64 {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}
