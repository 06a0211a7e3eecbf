package broker

import (
	"math"
	"strconv"

	"curfew/broker/amqp"
)

// readTimes reads the headers by which a publisher names instants: until when the
// message is good, and when it is due to be enqueued, by x-delay or x-scheduled-
// enqueue-time, whichever is later (Unix µs; 0: never, now). An instant is an AMQP
// timestamp or an integer of Unix ms, of the wall clock as it is now. A delay or scheduled time that has passed is
// none, so that a message published again is not delayed again. Errors: 406.
func (b *Broker) readTimes(headers amqp.Table) (expiresAt, due int64, err error) {
	now, stamp := b.clock.read()
	if expiresAt, err = b.instantOf(headers, expiresAtHeader, now); err != nil {
		return 0, 0, err
	}
	delay, err := delayOf(headers)
	if err != nil {
		return 0, 0, err
	}
	if due, err = b.instantOf(headers, scheduledHeader, now); err != nil {
		return 0, 0, err
	}
	if delay > 0 {
		due = max(due, stamp+delay*milli)
	}
	if due <= now {
		due = 0
	}
	return expiresAt, due, nil
}

// instantOf reads an instant, Unix ms of the wall clock in the header, in Unix µs of the
// broker's clock, which was read just now, at least 1; 0 if the header is absent, or says that
// the message never expires.
func (b *Broker) instantOf(headers amqp.Table, name string, now int64) (int64, error) {
	v, ok := headers[name]
	if !ok {
		return 0, nil
	}
	ahead := b.ahead()
	n, isInt := amqp.Integer(v)
	if t, isTime := v.(amqp.Timestamp); isTime {
		n, isInt = int64(min(t, math.MaxInt64/1000))*1000, true
	}
	switch {
	case !isInt:
		return 0, badHeader(name, "expected timestamp or integer of milliseconds, got "+amqp.TypeName(v))
	case n < 0:
		return 0, badHeader(name, "{value_negative,"+strconv.FormatInt(n, 10)+"}")
	case name == expiresAtHeader && IsNever(n):
		return 0, nil
	case n > (now-ahead)/milli+MaxTTLMillis:
		return 0, badHeader(name, "{value_too_large,"+strconv.FormatInt(n, 10)+"}")
	}
	return max(n*milli+ahead, 1), nil
}

// delayOf reads x-delay, in ms: any number, or text that is one. One that is not
// positive is no delay (RabbitMQ: Delayed Message Plugin).
func delayOf(headers amqp.Table) (int64, error) {
	v, ok := headers[delayHeader]
	if !ok {
		return 0, nil
	}
	n, isNumber := numberOf(v)
	switch {
	case !isNumber:
		return 0, badHeader(delayHeader, "expected integer, got "+amqp.TypeName(v))
	case n > MaxTTLMillis:
		return 0, badHeader(delayHeader, "{value_too_large,"+strconv.FormatInt(n, 10)+"}")
	}
	return n, nil
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

func badHeader(name, reason string) error { return badPublish("invalid header '%s': %s", name, reason) }

// delayDone marks the message as delayed already: its x-delay is negated, so that
// it is not delayed again by whoever publishes it next.
func delayDone(headers amqp.Table) {
	n, _ := numberOf(headers[delayHeader])
	switch {
	case n <= 0:
	case n <= math.MaxInt32:
		headers[delayHeader] = int32(-n)
	default:
		headers[delayHeader] = -n
	}
}
