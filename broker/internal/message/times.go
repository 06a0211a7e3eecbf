package message

import (
	"math"
	"strconv"
	"time"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
)

// ReadTimes reads the headers with which a publisher sets instants: when the message
// expires (0: never), and when it is due to be enqueued, by x-delay or
// x-scheduled-enqueue-time, whichever is later (0: now). An instant is an AMQP timestamp or
// an integer of Unix ms, by the wall clock; ahead is how far the broker's clock is ahead of
// that. now and stamp are the present instant, rounded down and up. A delay or scheduled
// time that has passed counts as none, so that a message published again is not delayed
// again. Errors: 406.
func ReadTimes(headers amqp.Table, now, stamp deadline.Instant, ahead time.Duration) (expiresAt, due deadline.Instant, err error) {
	if expiresAt, err = InstantOf(headers, ExpiresAtHeader, now, ahead); err != nil {
		return 0, 0, err
	}
	delay, err := delayOf(headers)
	if err != nil {
		return 0, 0, err
	}
	if due, err = InstantOf(headers, scheduledHeader, now, ahead); err != nil {
		return 0, 0, err
	}
	if delay > 0 {
		due = max(due, stamp.AddMillis(delay))
	}
	if due <= now {
		due = 0
	}
	return expiresAt, due, nil
}

// InstantOf reads an instant from a header, Unix ms of the wall clock, and returns it as one of
// the broker's clock, at least 1. It returns 0 if the header is absent, or says that the message
// never expires. now is the present instant.
func InstantOf(headers amqp.Table, name string, now deadline.Instant, ahead time.Duration) (deadline.Instant, error) {
	v, ok := headers[name]
	if !ok {
		return 0, nil
	}
	n, isInt := amqp.Integer(v)
	if t, isTime := v.(amqp.Timestamp); isTime {
		n, isInt = int64(min(t, math.MaxInt64/1000))*1000, true
	}
	switch {
	case !isInt:
		return 0, badHeader(name, "expected timestamp or integer of milliseconds, got "+amqp.TypeName(v))
	case n < 0:
		return 0, badHeader(name, "{value_negative,"+strconv.FormatInt(n, 10)+"}")
	case name == ExpiresAtHeader && policy.IsNever(n):
		return 0, nil
	case n > now.Add(-ahead).Time().UnixMilli()+policy.MaxTTLMillis:
		return 0, badHeader(name, strconv.FormatInt(n, 10)+" is more than ten years ahead")
	}
	return max(deadline.FromUnixMilli(n).Add(ahead), 1), nil
}

// delayOf reads x-delay, in ms: any number, or text that is a number. Zero or less means
// no delay, and so does a value of another type (RabbitMQ: Delayed Message Plugin).
func delayOf(headers amqp.Table) (deadline.Millis, error) {
	n, isNumber := numberOf(headers[delayHeader])
	_, isText := headers[delayHeader].(string)
	switch {
	case isText && !isNumber:
		return 0, badHeader(delayHeader, "expected integer, got longstr")
	case !isNumber:
		return 0, nil
	case n > policy.MaxTTLMillis:
		return 0, badHeader(delayHeader, "{value_too_large,"+strconv.FormatInt(n, 10)+"}")
	}
	return deadline.Millis(n), nil
}

func numberOf(v any) (int64, bool) {
	switch v := v.(type) {
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	case float32:
		return numberOf(float64(v))
	case float64:
		return int64(min(v, 1<<62)), v > -1<<62
	}
	return amqp.Integer(v)
}

func badHeader(name, reason string) error { return BadPublish("invalid header '%s': %s", name, reason) }

// DelayDone marks the message as already delayed: it negates x-delay, and removes what made it
// replace another one, so that neither happens again when somebody publishes it again.
func DelayDone(headers amqp.Table) {
	for _, name := range []string{replaceHeader, replaceOnlyHeader, answerHeader, publisherHeader, secretHeader} {
		delete(headers, name)
	}
	n, _ := numberOf(headers[delayHeader])
	switch {
	case n <= 0:
	case n <= math.MaxInt32:
		headers[delayHeader] = int32(-n)
	default:
		headers[delayHeader] = -n
	}
}
