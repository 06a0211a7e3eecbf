package broker

import (
	"bytes"

	"curfew/broker/amqp"
)

// stored are the limits for tables that were checked when they came in, and may
// have grown by death headers since.
var stored = amqp.Limits{Depth: 32, Entries: 1 << 20, Values: 1 << 20}

// carriesKeys says whether a raw headers table may name further routing keys
// (RabbitMQ: Sender-selected Distribution). True is not certain; false is.
func carriesKeys(headers []byte) bool {
	return bytes.Contains(headers, []byte("\x02CC")) || carriesBCC(headers)
}

// carriesBCC says whether a raw headers table may hold a BCC header.
func carriesBCC(headers []byte) bool { return bytes.Contains(headers, []byte("\x03BCC")) }

// lazyTable returns a function that parses a raw headers table when first asked.
func lazyTable(raw []byte) func() amqp.Table {
	var table amqp.Table
	parsed := false
	return func() amqp.Table {
		if !parsed && raw != nil {
			table, _, _ = amqp.ParseTable(raw, stored) // checked at publish
		}
		parsed = true
		return table
	}
}

// keyList reads the value of a CC or BCC header: an array of long strings.
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

// checkKeys refuses a CC or BCC header that is no array of strings, with
// RabbitMQ's text.
func checkKeys(headers amqp.Table) error {
	for _, name := range []string{"CC", "BCC"} {
		v, ok := headers[name]
		if !ok {
			continue
		}
		if values, isArray := v.([]any); !isArray || len(keyList(v)) != len(values) {
			return amqp.NewException(amqp.PreconditionFailed, amqp.ClassBasic, amqp.BasicPublishID.Method(),
				"invalid %s header type; expected array of strings", name)
		}
	}
	return nil
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
