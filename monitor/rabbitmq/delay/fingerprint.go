package delay

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/monitor/rabbitmq/keeper"
)

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
