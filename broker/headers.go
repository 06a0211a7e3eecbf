package broker

import (
	"bytes"

	"curfew/broker/amqp"
)

// stored are the limits for tables that were checked when they came in, and may
// have grown by death headers since.
var stored = amqp.Limits{Depth: 32, Entries: 1 << 20, Values: 1 << 20}

// Headers by which a publisher says when a message is enqueued, until when it is
// good, and whether it wants to know that it was not.
const (
	delayHeader     = "x-delay"                  // ms from now (RabbitMQ: Delayed Message Plugin)
	scheduledHeader = "x-scheduled-enqueue-time" // an instant (Service Bus: Scheduled messages)
	expiresAtHeader = "x-expires-at"             // an instant
	receiptHeader   = "x-expiry-receipt"         // true: tell reply-to when it expires
)

// marks are the headers of a message that mean something to the broker.
type marks uint8

const (
	ccMark marks = 1 << iota
	bccMark
	delayMark
	scheduledMark
	expiresAtMark
	receiptMark

	keyMarks  = ccMark | bccMark // further routing keys (RabbitMQ: Sender-selected Distribution)
	timeMarks = delayMark | scheduledMark | expiresAtMark
)

// marksOf looks for them in a raw table, which was checked.
func marksOf(headers []byte) (m marks) {
	for f := amqp.WalkTable(headers); f.Next(); {
		switch string(f.Name) {
		case "CC":
			m |= ccMark
		case "BCC":
			m |= bccMark
		case delayHeader:
			m |= delayMark
		case scheduledHeader:
			m |= scheduledMark
		case expiresAtHeader:
			m |= expiresAtMark
		case receiptHeader:
			m |= receiptMark
		}
	}
	return m
}

// headersOf parses a message's raw headers, which were checked when it was published; nil
// has none.
func headersOf(raw []byte) amqp.Table {
	if raw == nil {
		return nil
	}
	table, _, _ := amqp.ParseTable(raw, stored)
	return table
}

// keyList reads the value of a CC or BCC header, an array: the long strings in it.
func keyList(v any) []string {
	values, _ := v.([]any)
	var keys []string
	for _, v := range values {
		if key, ok := v.(string); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// checkKeys refuses a CC or BCC header that is no array, with RabbitMQ's text.
func checkKeys(headers amqp.Table) error {
	for _, name := range []string{"CC", "BCC"} {
		v, ok := headers[name]
		if _, isArray := v.([]any); ok && !isArray {
			return badPublish(`invalid message: {unacceptable_type_in_header,"%s",%s}`, name, amqp.TypeName(v))
		}
	}
	return nil
}

// badPublish is a 406 for basic.publish.
func badPublish(format string, args ...any) error {
	return amqp.NewException(amqp.PreconditionFailed, amqp.ClassBasic, amqp.BasicPublishID.Method(), format, args...)
}

// withoutBCC returns a property list without its BCC header, which no consumer
// may see.
func withoutBCC(properties []byte) []byte {
	p, err := amqp.ParseProperties(properties, stored)
	if err != nil {
		return properties
	}
	delete(p.Headers, "BCC")
	return p.Append(nil)
}

const deliveryCount = "x-delivery-count"

// countDeliveries writes a property list with the header that tells how many
// deliveries of a quorum queue's message have failed (RabbitMQ: Quorum Queues,
// Poison Message Handling) into scratch. A header of that name that the publisher
// set is replaced.
func countDeliveries(scratch, properties []byte, failed uint16) []byte {
	if bytes.Contains(properties, []byte(deliveryCount)) {
		if p, err := amqp.ParseProperties(properties, stored); err == nil {
			delete(p.Headers, deliveryCount)
			properties = p.Append(nil)
		}
	}
	return amqp.AppendWithLong(scratch[:0], properties, deliveryCount, int64(failed))
}
