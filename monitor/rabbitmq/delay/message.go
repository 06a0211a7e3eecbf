package delay

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/keeper"
)

// message is what is kept of a delivery.
type message struct {
	fingerprint uint64
	id, key     string
	user        string // as RabbitMQ has checked it; "": the publisher did not say

	until      deadline.Instant // x-delay-until; 0: it has none
	delay      time.Duration    // x-delay, after it was published; negative: it has none
	expires    bool             // it has an expiration
	expiration time.Duration    // with expires
	published  deadline.Instant // at the latest, by what the message says; 0: nothing
	stamp      deadline.Instant // when it is due, as RabbitMQ has kept it; 0: it has no stamp
	stamped    deadline.Instant // when it was first put aside, with a stamp
	deaths     int64            // how often it has been dead-lettered from this queue
	passed     string           // the queue that it was dead-lettered from last
	returned   bool             // it was delivered before

	to     string // the queue that it is for, with mode retry
	again  bool   // nobody knows which: when it is due, it is looked at again
	parked bool   // it is in its parking queue

	publish func(*message) // publishes it again, and notes what became of that; nil: it is not to be

	command commandKind
	target  string           // the message that a command is about
	invalid bool             // its header is not a text, and names none
	before  deadline.Instant // of a tombstone that an instance has published; 0: it is none
	only    bool             // x-replace-only
	of      string           // the user whose messages that tombstone ends; "": anybody's
	replyTo string
	correl  string
}

type commandKind uint8

const (
	noCommand commandKind = iota
	cancelling
	replacing
	rescheduling
)

// longest is the longest delay: a hundred years.
const longest = 100 * 365 * 24 * time.Hour

// read takes what is needed from a delivery.
func read(fingerprints *keeper.Fingerprints, queue string, d *amqp091.Delivery) message {
	stamp := d.Headers[stampHeader]
	delete(d.Headers, stampHeader)
	delete(d.Headers, deliveryTime)
	m := message{fingerprint: fingerprintOf(fingerprints, d), id: d.MessageId, key: d.RoutingKey, user: d.UserId,
		returned: d.Redelivered, replyTo: d.ReplyTo, correl: d.CorrelationId}
	if ms, ok := millis(d.Headers["x-delay-until"]); ok && ms > 0 && ms < longest.Milliseconds() {
		m.until = deadline.FromUnixMilli(ms)
	}
	m.delay = -1
	if v, given := d.Headers["x-delay"]; given {
		ms, _ := millis(v)
		m.delay = delayOf(ms)
	}
	if ms, ok := millis(d.Expiration); ok {
		m.expires, m.expiration = true, delayOf(ms)
	}
	m.published = keeper.Published(d)
	if deaths, ok := d.Headers["x-death"].([]any); ok && len(deaths) > 0 {
		if last, ok := deaths[0].(amqp091.Table); ok {
			m.passed, _ = last["queue"].(string)
		}
		for _, one := range deaths {
			if death, ok := one.(amqp091.Table); ok && death["queue"] == queue {
				times, _ := keeper.Integer(death["count"])
				m.deaths += times
			}
		}
	}
	m.stamp, m.stamped = readStamp(stamp, m.deaths)
	for kind, header := range map[commandKind]string{cancelling: "x-cancel", replacing: "x-replace", rescheduling: "x-reschedule"} {
		if v := d.Headers[header]; v != nil && kind > m.command {
			id, ok := plain(v).(string)
			m.command, m.target, m.invalid = kind, id, !ok
		}
	}
	m.only, _ = d.Headers["x-replace-only"].(bool)
	if before, ok := keeper.Integer(d.Headers[beforeHeader]); ok && m.command == cancelling {
		m.before = deadline.Instant(before)
		m.of, _ = plain(d.Headers[userHeader]).(string)
	}
	return m
}

func delayOf(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), longest.Milliseconds())) * time.Millisecond
}

// millis reads a number of ms as the delayed-message plugin does: integers, floats without their fraction, digits.
func millis(v any) (int64, bool) {
	switch v := v.(type) {
	case float64:
		return int64(max(-1, min(v, float64(longest.Milliseconds())))), v == v
	case float32:
		return millis(float64(v))
	case string:
		ms, err := strconv.ParseInt(v, 10, 64)
		return ms, err == nil
	}
	return keeper.Integer(v)
}

// urnUUID begins a message-id of which RabbitMQ makes a UUID for AMQP 1.0, so that its letters become small.
const urnUUID = "urn:uuid:"

// overwritten are headers in whose place an AMQP 1.0 message may have an annotation of RabbitMQ's.
var overwritten = []string{"x-exchange", "x-routing-key", "x-basic-type", "x-cc", "x-opt-deaths", "x-opt-rabbitmq-received-time"}

// fingerprintOf is the fingerprint of a message, the same over AMQP 0-9-1 and 1.0: it leaves out what RabbitMQ's conversion of a message that was published
// with 0-9-1 loses. That is arrays and tables in headers whose names do not begin with x-; which strings were binary; which mode other than persistent it
// had; and whether the priority was 4 or none.
func fingerprintOf(fingerprints *keeper.Fingerprints, d *amqp091.Delivery) uint64 {
	m := *d
	m.Headers = amqp091.Table{}
	for name, v := range d.Headers {
		v = plain(v)
		_, array := v.([]any)
		_, table := v.(amqp091.Table)
		if kept := strings.HasPrefix(name, "x-"); kept && !slices.Contains(overwritten, name) || !kept && !array && !table {
			m.Headers[name] = v
		}
	}
	if m.DeliveryMode != amqp091.Persistent {
		m.DeliveryMode = 0
	}
	if m.Priority == 4 {
		m.Priority = 0
	}
	for _, id := range []*string{&m.MessageId, &m.CorrelationId} {
		if strings.HasPrefix(*id, urnUUID) {
			*id = strings.ToLower(*id)
		}
	}
	if m.Headers["timestamp_in_ms"] != nil { // over 0-9-1 RabbitMQ takes the timestamp from it
		m.Timestamp = time.Time{}
	}
	return fingerprints.Of(&m)
}

// plain is the value of a header in the types that fingerprints tell apart.
func plain(v any) any {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Slice:
		all := make([]any, r.Len())
		for i := range all {
			all[i] = plain(r.Index(i).Interface())
		}
		return all
	case reflect.Map:
		all := amqp091.Table{}
		for _, key := range r.MapKeys() {
			if name := fmt.Sprint(key.Interface()); name != lastTime {
				all[name] = plain(r.MapIndex(key).Interface())
			}
		}
		return all
	}
	return v
}

// life is how long after it was published RabbitMQ expires the message in a queue with a time to live; negative: there is none, or it does not.
func (m *message) life(ttl time.Duration) time.Duration {
	if m.expires && (ttl < 0 || m.expiration < ttl) {
		return m.expiration
	}
	return ttl
}

// expiresFirst reports whether RabbitMQ expires a message that lives so long before it is due, which delivers it, unless somebody holds it.
func (m *message) expiresFirst(now, due deadline.Instant, life time.Duration) bool {
	if m.published > 0 {
		now = min(now, m.published)
	}
	return life >= 0 && (m.delay > life || m.until > 0 && due > now.Add(life))
}
