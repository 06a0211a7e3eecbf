package amqp

import "encoding/binary"

// The three methods that carry a message to a client. Each function appends only the method
// frame, without allocating; AppendContent appends the rest. A name of more than 255 octets
// panics.

// AppendDeliver appends a basic.deliver frame.
func AppendDeliver(b []byte, channel uint16, consumerTag string, tag uint64, redelivered bool, exchange, routingKey []byte) []byte {
	size := 4 + 1 + len(consumerTag) + 8 + 1 + 1 + len(exchange) + 1 + len(routingKey)
	b = appendFrameHeader(b, FrameMethod, channel, size)
	b = binary.BigEndian.AppendUint32(b, uint32(BasicDeliverID))
	b = appendShortstr(b, consumerTag)
	b = binary.BigEndian.AppendUint64(b, tag)
	b = append(b, bit(redelivered))
	b = appendShortstr(b, exchange)
	b = appendShortstr(b, routingKey)
	return append(b, FrameEnd)
}

// AppendGetOk appends a basic.get-ok frame. messageCount is the number of ready messages
// left.
func AppendGetOk(b []byte, channel uint16, tag uint64, redelivered bool, exchange, routingKey []byte, messageCount uint32) []byte {
	size := 4 + 8 + 1 + 1 + len(exchange) + 1 + len(routingKey) + 4
	b = appendFrameHeader(b, FrameMethod, channel, size)
	b = binary.BigEndian.AppendUint32(b, uint32(BasicGetOkID))
	b = binary.BigEndian.AppendUint64(b, tag)
	b = append(b, bit(redelivered))
	b = appendShortstr(b, exchange)
	b = appendShortstr(b, routingKey)
	b = binary.BigEndian.AppendUint32(b, messageCount)
	return append(b, FrameEnd)
}

// AppendReturn appends a basic.return frame, its text cut to 255 octets.
func AppendReturn(b []byte, channel uint16, code uint16, text string, exchange, routingKey []byte) []byte {
	text = cutText(text)
	size := 4 + 2 + 1 + len(text) + 1 + len(exchange) + 1 + len(routingKey)
	b = appendFrameHeader(b, FrameMethod, channel, size)
	b = binary.BigEndian.AppendUint32(b, uint32(BasicReturnID))
	b = binary.BigEndian.AppendUint16(b, code)
	b = appendShortstr(b, text)
	b = appendShortstr(b, exchange)
	b = appendShortstr(b, routingKey)
	return append(b, FrameEnd)
}
