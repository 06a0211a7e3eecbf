package amqp

import "encoding/binary"

// BasicAck is a basic.ack, in both directions: it settles deliveries and confirms
// publishes.
type BasicAck struct {
	DeliveryTag uint64
	Multiple    bool
}

func (*BasicAck) ID() MethodID { return BasicAckID }

func (m *BasicAck) parse(r *reader) {
	m.DeliveryTag = r.longlong()
	r.bits(&m.Multiple)
}

func (m *BasicAck) append(b []byte) []byte {
	return appendBits(appendLonglong(b, m.DeliveryTag), m.Multiple)
}

type BasicReject struct {
	DeliveryTag uint64
	Requeue     bool
}

func (*BasicReject) ID() MethodID { return BasicRejectID }

func (m *BasicReject) parse(r *reader) {
	m.DeliveryTag = r.longlong()
	r.bits(&m.Requeue)
}

func (m *BasicReject) append(b []byte) []byte {
	return appendBits(appendLonglong(b, m.DeliveryTag), m.Requeue)
}

// BasicNack is a basic.nack, in both directions. Requeue has no meaning in a confirm.
type BasicNack struct {
	DeliveryTag       uint64
	Multiple, Requeue bool
}

func (*BasicNack) ID() MethodID { return BasicNackID }

func (m *BasicNack) parse(r *reader) {
	m.DeliveryTag = r.longlong()
	r.bits(&m.Multiple, &m.Requeue)
}

func (m *BasicNack) append(b []byte) []byte {
	return appendBits(appendLonglong(b, m.DeliveryTag), m.Multiple, m.Requeue)
}

type BasicRecoverAsync struct{ Requeue bool }

func (*BasicRecoverAsync) ID() MethodID             { return BasicRecoverAsyncID }
func (m *BasicRecoverAsync) parse(r *reader)        { r.bits(&m.Requeue) }
func (m *BasicRecoverAsync) append(b []byte) []byte { return appendBits(b, m.Requeue) }

type BasicRecover struct{ Requeue bool }

func (*BasicRecover) ID() MethodID             { return BasicRecoverID }
func (m *BasicRecover) parse(r *reader)        { r.bits(&m.Requeue) }
func (m *BasicRecover) append(b []byte) []byte { return appendBits(b, m.Requeue) }

type BasicRecoverOk struct{ empty }

func (*BasicRecoverOk) ID() MethodID { return BasicRecoverOkID }

// settlePayload is method id, delivery tag and one octet of bits: the whole payload of ack,
// nack and reject.
const settlePayload = 4 + 8 + 1

// ParseAck parses a payload that is a basic.ack according to PeekMethod, without
// allocating. The error is an *Exception 502 SYNTAX_ERROR.
func ParseAck(payload []byte) (tag uint64, multiple bool, err error) {
	tag, bits, err := parseSettle(payload, BasicAckID)
	return tag, bits&1 != 0, err
}

// ParseNack is ParseAck for basic.nack.
func ParseNack(payload []byte) (tag uint64, multiple, requeue bool, err error) {
	tag, bits, err := parseSettle(payload, BasicNackID)
	return tag, bits&1 != 0, bits&2 != 0, err
}

// ParseReject is ParseAck for basic.reject.
func ParseReject(payload []byte) (tag uint64, requeue bool, err error) {
	tag, bits, err := parseSettle(payload, BasicRejectID)
	return tag, bits&1 != 0, err
}

func parseSettle(payload []byte, id MethodID) (tag uint64, bits byte, err error) {
	if len(payload) != settlePayload {
		return 0, 0, badMethod(id)
	}
	return binary.BigEndian.Uint64(payload[4:12]), payload[12], nil
}

// AppendAck appends a basic.ack frame.
func AppendAck(b []byte, channel uint16, tag uint64, multiple bool) []byte {
	return appendSettle(b, channel, BasicAckID, tag, bit(multiple))
}

// AppendNack appends a basic.nack frame.
func AppendNack(b []byte, channel uint16, tag uint64, multiple, requeue bool) []byte {
	return appendSettle(b, channel, BasicNackID, tag, bit(multiple)|bit(requeue)<<1)
}

func appendSettle(b []byte, channel uint16, id MethodID, tag uint64, bits byte) []byte {
	b = appendFrameHeader(b, FrameMethod, channel, settlePayload)
	b = appendLong(b, uint32(id))
	b = appendLonglong(b, tag)
	return append(b, bits, FrameEnd)
}

func bit(on bool) byte {
	if on {
		return 1
	}
	return 0
}
