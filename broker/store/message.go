package store

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"unsafe"
)

// Message is what a publisher sent, as raw AMQP bytes: two short strings, the property list
// (flags and values) and the body. Slices returned by View alias the store's memory and
// must not be written to.
type Message struct {
	Exchange, RoutingKey, Properties, Body []byte
}

// errTooLarge is Put's answer to a message that no record can hold: a short string exceeds
// 255 bytes, or the whole exceeds 256 MiB.
var errTooLarge = errors.New("store: message is too large")

// A message record, after its header:
//
//	 8  uint8   length of the exchange
//	 9  uint8   length of the routing key
//	10  uint16  number of slots
//	12  uint32  length of the properties
//	16          slots of 16 bytes, exchange, routing key, properties, body
//
// In the volatile log a slot is an entry that refers to the message, [queue, seq]; so this
// log is compacted without an index. In the journal, a copy that compaction made has one
// slot: [position of the original, 0].
const (
	messageHeader = recordHeader + 8
	slotBytes     = 16
	maxSlots      = 1<<16 - 1
)

// messageBytes returns the length of m's record, before alignment.
func messageBytes(m *Message, slots int) (int, error) {
	n := messageHeader + slots*slotBytes + len(m.Exchange) + len(m.RoutingKey) + len(m.Properties) + len(m.Body)
	if len(m.Exchange) > 255 || len(m.RoutingKey) > 255 || n-recordHeader > maxRecord || n < 0 {
		return 0, errTooLarge
	}
	return n, nil
}

// largeRecord is the size above which a record is written without holding the log's lock: the
// first touch of new pages may take a millisecond for each 100 KiB, and everybody waits for
// the lock.
const largeRecord = 64 << 10

// putMessage writes m's record of n bytes, except for the checksum, with free slots.
func putMessage(b []byte, n int, m *Message, slots int) {
	putHeader(b, kindMessage, n-recordHeader)
	b[8], b[9] = uint8(len(m.Exchange)), uint8(len(m.RoutingKey))
	binary.LittleEndian.PutUint16(b[10:], uint16(slots))
	binary.LittleEndian.PutUint32(b[12:], uint32(len(m.Properties)))
	b = b[messageHeader:]
	clear(b[:slots*slotBytes])
	b = b[slots*slotBytes:]
	b = b[copy(b, m.Exchange):]
	b = b[copy(b, m.RoutingKey):]
	b = b[copy(b, m.Properties):]
	for body := m.Body; len(body) > 0; { // in steps: a copy cannot be preempted, not even to collect garbage
		n := copy(b, body[:min(len(body), 256<<10)])
		b, body = b[n:], body[n:]
	}
}

// viewMessage reads the message record at the start of b.
func viewMessage(b []byte) Message {
	_, end := header(b)
	exchange := messageHeader + int(binary.LittleEndian.Uint16(b[10:]))*slotBytes
	key := exchange + int(b[8])
	properties := key + int(b[9])
	body := properties + int(binary.LittleEndian.Uint32(b[12:]))
	return Message{
		Exchange:   b[exchange:key:key],
		RoutingKey: b[key:properties:properties],
		Properties: b[properties:body:body],
		Body:       b[body:end:end],
	}
}

// slot is one queue entry that refers to a message: [queue, seq].
type slot [2]uint64

// slotsOf returns the slots of the message record at the start of b, aliased.
func slotsOf(b []byte) []slot {
	n := int(binary.LittleEndian.Uint16(b[10:]))
	return unsafe.Slice((*slot)(unsafe.Pointer(&b[messageHeader])), n)
}

// slotScan is how many slots are searched for a free one.
const slotScan = 16

// enqueued records in a free slot of the message at p which entry refers to it. If none is free
// compaction cannot move the message, which costs only memory. If there are many slots each
// queue searches from a different start: otherwise every queue would search through the
// slots taken before.
func (v *volatileLog) enqueued(p Pos, queue, seq uint64) {
	slots := slotsOf(v.table.get(p.segment()).mem[p.offset():])
	from := 0
	if len(slots) > slotScan {
		from = int(queue * 0x9e3779b97f4a7c15 >> 32 % uint64(len(slots)))
	}
	for i := range slots {
		if i += from; i >= len(slots) {
			i -= len(slots)
		}
		if s := &slots[i]; atomic.CompareAndSwapUint64(&s[0], 0, queue) {
			atomic.StoreUint64(&s[1], seq)
			return
		}
	}
}
