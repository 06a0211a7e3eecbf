package message

import (
	"bytes"

	"curfew/broker/amqp"
)

// StoredLimits are the limits for tables that were checked when they were published, and
// may have grown since by death headers.
var StoredLimits = amqp.Limits{Depth: 32, Entries: 1 << 20, Values: 1 << 20}

// Headers by which a publisher says when a message is enqueued, when it expires, and
// whether to report its expiry.
const (
	delayHeader     = "x-delay"                  // ms from now (RabbitMQ: Delayed Message Plugin)
	scheduledHeader = "x-scheduled-enqueue-time" // an instant (Service Bus: Scheduled messages)
	ExpiresAtHeader = "x-expires-at"             // an instant
	ReceiptHeader   = "x-expiry-receipt"         // true: send a receipt to reply-to when it expires
)

// Marks are the headers of a message that the broker acts on.
type Marks uint16

const (
	ccMark Marks = 1 << iota
	BccMark
	delayMark
	scheduledMark
	expiresAtMark
	ReceiptMark
	CommandMark   // it may change a scheduled message (CommandOf)
	PublisherMark // it has a header that only the broker writes (Scheduled.In)
	AnswerMark    // its publisher may want to know the id of the delayed message (WantsID)

	KeyMarks = ccMark | BccMark // further routing keys (RabbitMQ: Sender-selected Distribution)
)

// MarksOf finds those headers in a raw table that was checked.
func MarksOf(headers []byte) (m Marks) {
	for f := amqp.WalkTable(headers); f.Next(); {
		switch string(f.Name) {
		case "CC":
			m |= ccMark
		case "BCC":
			m |= BccMark
		case delayHeader:
			m |= delayMark
		case scheduledHeader:
			m |= scheduledMark
		case ExpiresAtHeader:
			m |= expiresAtMark
		case ReceiptHeader:
			m |= ReceiptMark
		case cancelHeader, replaceHeader, rescheduleHeader:
			m |= CommandMark
		case answerHeader:
			m |= AnswerMark
		case publisherHeader, secretHeader:
			m |= PublisherMark
		}
	}
	return m
}

// HeadersOf parses a message's raw headers, which were checked when it was published. It returns
// nil for nil.
func HeadersOf(raw []byte) amqp.Table {
	if raw == nil {
		return nil
	}
	table, _, _ := amqp.ParseTable(raw, StoredLimits)
	return table
}

// KeyList returns the long strings in the value of a CC or BCC header, an array.
func KeyList(v any) []string {
	values, _ := v.([]any)
	var keys []string
	for _, v := range values {
		if key, ok := v.(string); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// FurtherKeys are the routing keys in CC and BCC.
func FurtherKeys(headers amqp.Table) []string {
	return append(KeyList(headers["CC"]), KeyList(headers["BCC"])...)
}

// CheckKeys refuses a CC or BCC header that is not an array, with RabbitMQ's text.
func CheckKeys(headers amqp.Table) error {
	for _, name := range []string{"CC", "BCC"} {
		v, ok := headers[name]
		if _, isArray := v.([]any); ok && !isArray {
			return BadPublish(`invalid message: {unacceptable_type_in_header,"%s",%s}`, name, amqp.TypeName(v))
		}
	}
	return nil
}

// BadPublish is a 406 for basic.publish.
func BadPublish(format string, args ...any) error {
	return amqp.NewException(amqp.PreconditionFailed, amqp.ClassBasic, amqp.BasicPublishID.Method(), format, args...)
}

// WithoutBCC returns a property list without its BCC header, which no consumer
// may see.
func WithoutBCC(properties []byte) []byte { return without(properties, "BCC") }

// without returns a property list without some headers.
func without(properties []byte, headers ...string) []byte {
	p, err := amqp.ParseProperties(properties, StoredLimits)
	if err != nil {
		return properties
	}
	for _, name := range headers {
		delete(p.Headers, name)
	}
	return p.Append(nil)
}

const deliveryCount = "x-delivery-count"

// CountDeliveries writes a property list into scratch, with the header that counts the
// failed deliveries of a quorum queue's message (RabbitMQ: Quorum Queues, Poison Message
// Handling). It replaces a header of that name from the publisher.
func CountDeliveries(scratch, properties []byte, failed uint16) []byte {
	if bytes.Contains(properties, []byte(deliveryCount)) {
		properties = without(properties, deliveryCount)
	}
	return amqp.AppendWithLong(scratch[:0], properties, deliveryCount, int64(failed))
}
