package message

import (
	"bytes"
	"strconv"

	"curfew/broker/policy"
)

// ParseExpiration reads the expiration property: the whole short string is one
// decimal integer of ms, 0 to MaxTTLMillis (RabbitMQ: Per-Message TTL). Never (IsNever)
// gives -1, as without a TTL. The error is RabbitMQ's 406 for basic.publish.
func ParseExpiration(text []byte) (ttlMillis int64, err error) {
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
	var reason string
	switch {
	case digits == 0 || (digits == 1 && (text[0] == '-' || text[0] == '+')):
		reason = "no_integer"
	case digits < len(text):
		reason = `{leftover_string,"` + string(text[digits:]) + `"}`
	case text[0] == '-' && (n < 0 || parseErr != nil):
		reason = "{value_negative," + string(text) + "}"
	case parseErr == nil && policy.IsNever(n):
		return -1, nil
	case parseErr != nil || n > policy.MaxTTLMillis:
		reason = "{value_too_large," + string(bytes.TrimLeft(text, "+0")) + "}"
	default:
		return n, nil
	}
	return 0, BadPublish("invalid expiration '%s': %s", text, reason)
}

// plainMillis reads the usual form: digits alone, at most MaxTTLMillis. Most messages here have
// an expiration, so it makes no string.
func plainMillis(text []byte) (n int64, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' || n > policy.MaxTTLMillis {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, len(text) > 0 && n <= policy.MaxTTLMillis
}
