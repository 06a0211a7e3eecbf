package amqp

import "encoding/binary"

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
	b = binary.BigEndian.AppendUint32(b, uint32(id))
	b = binary.BigEndian.AppendUint64(b, tag)
	return append(b, bits, FrameEnd)
}

func bit(on bool) byte {
	if on {
		return 1
	}
	return 0
}
