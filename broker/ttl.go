package broker

import (
	"bytes"
	"strconv"

	"curfew/broker/amqp"
)

// parseExpiration reads the expiration property: the whole short string is one
// decimal integer of ms, 0 to MaxTTLMillis (RabbitMQ: Per-Message TTL). The
// error is RabbitMQ's 406 for basic.publish.
func parseExpiration(text []byte) (ttlMillis int64, err error) {
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
	case parseErr != nil || n > MaxTTLMillis:
		return 0, badExpiration(text, "{value_too_large,"+string(bytes.TrimLeft(text, "+0"))+"}")
	}
	return n, nil
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
