package message

import (
	"bytes"
	"encoding/binary"

	"curfew/broker/amqp"
)

// Meaningful reports whether one of the headers may be for the broker: CC, BCC, or one that
// begins with x-.
func Meaningful(headers []byte) bool {
	return bytes.Contains(headers, []byte("x-")) || bytes.Contains(headers, []byte("CC"))
}

// AppendFirstDeath appends the headers of a message that has died for the first time:
// its old ones, from view, and the new ones in the order in which AppendTable writes them.
func AppendFirstDeath(b []byte, queue, reason string, exchange, key []byte, view *amqp.PropertyView, copies int, at int64) []byte {
	b, headers := amqp.OpenTable(b)
	if view.Headers != nil {
		b = append(b, view.Headers[4:]...) // the entries
	}
	if copies > 1 {
		b = binary.BigEndian.AppendUint64(amqp.AppendKey(b, copiesHeader, 'l'), uint64(copies))
	}
	b = amqp.AppendKey(b, "x-death", 'A')
	b, deaths := amqp.OpenTable(b)
	b, entry := amqp.OpenTable(append(b, 'F'))
	b = binary.BigEndian.AppendUint64(amqp.AppendKey(b, "count", 'l'), 1)
	b = AppendText(b, "exchange", exchange)
	if view.Has&amqp.HasExpiration != 0 {
		b = AppendText(b, "original-expiration", view.Expiration)
	}
	b = AppendText(b, "queue", queue)
	b = AppendText(b, "reason", reason)
	b = amqp.AppendKey(b, "routing-keys", 'A')
	b, keys := amqp.OpenTable(b)
	b = append(binary.BigEndian.AppendUint32(append(b, 'S'), uint32(len(key))), key...)
	b = amqp.CloseTable(b, keys)
	b = binary.BigEndian.AppendUint64(amqp.AppendKey(b, "time", 'T'), uint64(at))
	b = amqp.CloseTable(b, entry)
	b = amqp.CloseTable(b, deaths)
	b = AppendText(b, "x-first-death-exchange", exchange)
	b = AppendText(b, "x-first-death-queue", queue)
	b = AppendText(b, "x-first-death-reason", reason)
	b = AppendText(b, "x-last-death-exchange", exchange)
	b = AppendText(b, "x-last-death-queue", queue)
	b = AppendText(b, "x-last-death-reason", reason)
	return amqp.CloseTable(b, headers)
}

// AppendText appends an entry of a table, with a long string.
func AppendText[S string | []byte](b []byte, key string, value S) []byte {
	return append(binary.BigEndian.AppendUint32(amqp.AppendKey(b, key, 'S'), uint32(len(value))), value...)
}
