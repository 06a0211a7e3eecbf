package amqp

// Publish is a basic.publish whose names alias the frame's payload.
type Publish struct {
	Exchange, RoutingKey []byte
	Mandatory, Immediate bool
}

// ParsePublish parses a payload that is a basic.publish according to PeekMethod, without
// allocating. The error is an *Exception 502 SYNTAX_ERROR.
func ParsePublish(payload []byte) (Publish, error) {
	const exchange = 4 + 2 // after the method id and a reserved short
	if len(payload) <= exchange {
		return Publish{}, badMethod(BasicPublishID)
	}
	key := exchange + 1 + int(payload[exchange])
	if len(payload) <= key {
		return Publish{}, badMethod(BasicPublishID)
	}
	bits := key + 1 + int(payload[key])
	if len(payload) != bits+1 {
		return Publish{}, badMethod(BasicPublishID)
	}
	return Publish{
		Exchange:   payload[exchange+1 : key : key],
		RoutingKey: payload[key+1 : bits : bits],
		Mandatory:  payload[bits]&1 != 0,
		Immediate:  payload[bits]&2 != 0,
	}, nil
}
