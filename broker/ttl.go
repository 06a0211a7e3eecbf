package broker

import (
	"bytes"
	"math"
	"strconv"

	"curfew/broker/amqp"
)

// neverMillis is how Service Bus's clients say never: TimeSpan.MaxValue, in ISO 8601
// P10675199DT2H48M5.4775807S, in whole ms. It is the default of every time to live there and
// of AutoDeleteOnIdle.
const neverMillis = 922_337_203_685_477

// IsNever says whether a number of ms stands for no time to live at all: Service Bus's
// longest span or the largest number. RabbitMQ refuses both, like all beyond MaxTTLMillis.
func IsNever(millis int64) bool { return millis == neverMillis || millis == math.MaxInt64 }

// parseExpiration reads the expiration property: the whole short string is one
// decimal integer of ms, 0 to MaxTTLMillis (RabbitMQ: Per-Message TTL), or never, which
// is -1 as if there was none. The error is RabbitMQ's 406 for basic.publish.
func parseExpiration(text []byte) (ttlMillis int64, err error) {
	if n, ok := plainMillis(text); ok {
		return n, nil
	}
	digits := len(text)
	for i, c := range text {
		if (c < '0' || c > '9') && (i > 0 || (c != '-' && c != '+')) {
			digits = i
			break
		}
	}
	n, parseErr := strconv.ParseInt(string(text[:digits]), 10, 64)
	switch {
	case digits == 0 || (digits == 1 && (text[0] == '-' || text[0] == '+')):
		return 0, badExpiration(text, "no_integer")
	case digits < len(text):
		return 0, badExpiration(text, `{leftover_string,"`+string(text[digits:])+`"}`)
	case text[0] == '-' && (n < 0 || parseErr != nil):
		return 0, badExpiration(text, "{value_negative,"+string(text)+"}")
	case parseErr == nil && IsNever(n):
		return -1, nil
	case parseErr != nil || n > MaxTTLMillis:
		return 0, badExpiration(text, "{value_too_large,"+string(bytes.TrimLeft(text, "+0"))+"}")
	}
	return n, nil
}

// plainMillis reads what nearly every message has: digits alone, of at most MaxTTLMillis.
// Most messages here have an expiration, so this is done without a string of it.
func plainMillis(text []byte) (n int64, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' || n > MaxTTLMillis {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, len(text) > 0 && n <= MaxTTLMillis
}

func badExpiration(text []byte, reason string) error {
	return amqp.NewException(amqp.PreconditionFailed, 60, 40, "invalid expiration '%s': %s", text, reason)
}

// effectiveTTL combines a queue's and a message's time to live, each <0 for none.
func (p Precedence) effectiveTTL(queueMillis, messageMillis int64) int64 {
	switch {
	case messageMillis < 0:
		return queueMillis
	case queueMillis < 0 || p == MessageFirst:
		return messageMillis
	}
	return min(queueMillis, messageMillis)
}

// lowerTTL is the lower of two times to live, each <0 for none.
func lowerTTL(a, b int64) int64 {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// deadline is when a message that enters q now expires: by the queue's time to
// live and the message's own and its absolute deadline, as its precedence says, but
// no later than the ceiling of the exchange it came by. 0: never; the present
// instant: it has come. immediate: even so a consumer may take it in this step.
func (q *Queue) deadline(s *step, it *item) (at int64, immediate bool) {
	set := q.set()
	if set.keeps || s.b.opts.TTLOff {
		return 0, false
	}
	ttl, own := set.ttlMillis, it.message.ExpiresAt
	if own != 0 && set.precedence == MessageFirst {
		ttl = -1
	}
	ttl = lowerTTL(set.precedence.effectiveTTL(ttl, it.ttlMillis), it.ceilingMillis)
	switch {
	case own != 0 && own <= s.now:
		return s.now, false
	case ttl == 0:
		return s.now, true
	case ttl > 0 && own != 0:
		return min(s.stamp+ttl*milli, own), false
	case ttl > 0:
		return s.stamp + ttl*milli, false
	}
	return own, false
}
