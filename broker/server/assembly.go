package server

import (
	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/server/internal/deliveries"
)

// stage is the kind of frame that comes next.
type stage uint8

const (
	nextMethod stage = iota // no publish is being assembled
	nextHeader              // the header of a publish
	nextBody                // more of its body
)

// ownProperties is how many octets of properties each assembly has room for. Longer
// properties, and bodies of several frames, are assembled in pooled buffers.
const ownProperties = 512

// assembly is the publish that a channel is receiving. The memory it takes is counted in the
// connection's deliveries.Memory. For one goroutine, which is the connection's reader.
type assembly struct {
	mandatory bool // of the publish that begin was called for last

	stage      stage
	properties []byte
	size       uint64
	body       []byte

	publication broker.Publication // names from begin on; the rest once it is complete
}

// begin begins a publish with its method frame. It copies the names, because the header may
// arrive with a later read.
func (a *assembly) begin(payload []byte) error {
	m, err := amqp.ParsePublish(payload)
	if err != nil {
		return err
	}
	if m.Immediate {
		return amqp.NewException(amqp.NotImplemented, amqp.ClassBasic, amqp.BasicPublishID.Method(), "immediate=true")
	}
	a.stage, a.mandatory = nextHeader, m.Mandatory
	a.publication.Exchange = append(a.publication.Exchange[:0], m.Exchange...)
	a.publication.RoutingKey = append(a.publication.RoutingKey[:0], m.RoutingKey...)
	return nil
}

// add adds a header or body frame, and refuses one that is out of order. most is how large a
// message may be. If the publish is complete with this frame, add returns it, else nil; it is valid
// until release, which must follow.
func (a *assembly) add(f amqp.Frame, most int, u *deliveries.Memory) (*broker.Publication, error) {
	switch a.stage {
	case nextHeader:
		if f.Type != amqp.FrameHeader {
			return nil, outOfOrder("expected content header for class 60, got non content header frame instead")
		}
		return a.addHeader(f.Payload, most, u)
	case nextBody:
		if f.Type != amqp.FrameBody {
			return nil, outOfOrder("expected content body, got non content body frame instead")
		}
		return a.addBody(f.Payload, u)
	}
	return nil, outOfOrder("expected method frame, got non method frame instead")
}

func outOfOrder(text string) error {
	return amqp.NewException(amqp.UnexpectedFrame, amqp.ClassBasic, amqp.BasicPublishID.Method(), "%s", text)
}

func (a *assembly) addHeader(payload []byte, most int, u *deliveries.Memory) (*broker.Publication, error) {
	h, err := amqp.ParseContentHeader(payload)
	if err != nil {
		return nil, err
	}
	if h.BodySize > uint64(most) {
		return nil, amqp.NewException(amqp.PreconditionFailed, amqp.ClassBasic, amqp.BasicPublishID.Method(),
			"message size %d is larger than configured max size %d", h.BodySize, most)
	}
	if h.BodySize == 0 {
		return a.complete(h.Properties, nil), nil
	}
	a.stage, a.size = nextBody, h.BodySize
	a.keepProperties(u, h.Properties)
	return nil, nil
}

// addBody adds one body frame. A body of a single frame is used straight from the read
// buffer. A longer body is assembled in memory that grows as it arrives.
func (a *assembly) addBody(b []byte, u *deliveries.Memory) (*broker.Publication, error) {
	left := a.size - uint64(len(a.body))
	switch {
	case len(b) == 0:
		return nil, nil // RabbitMQ accepts it, too
	case uint64(len(b)) > left:
		return nil, outOfOrder("content body larger than its header says")
	case uint64(len(b)) == a.size:
		return a.complete(a.properties, b), nil
	}
	a.appendBody(u, b)
	if uint64(len(b)) < left {
		return nil, nil
	}
	return a.complete(a.properties, a.body), nil
}

func (a *assembly) complete(properties, body []byte) *broker.Publication {
	a.stage = nextMethod
	a.publication.Properties, a.publication.Body = properties, body
	return &a.publication
}

// keepProperties copies the properties of a publish whose body is still to come.
func (a *assembly) keepProperties(u *deliveries.Memory, properties []byte) {
	if len(properties) > cap(a.properties) {
		u.Add(-budgetBytes(a.properties))
		if deliveries.RecycleBuffer(a.properties); len(properties) <= ownProperties {
			a.properties = make([]byte, 0, ownProperties)
		} else {
			a.properties = deliveries.NewBuffer(len(properties))
		}
		u.Add(budgetBytes(a.properties))
	}
	a.properties = append(a.properties[:0], properties...)
}

// budgetBytes is how much of the budget a buffer takes; the assembly's own buffer takes none.
func budgetBytes(b []byte) int64 {
	if cap(b) <= ownProperties {
		return 0
	}
	return int64(cap(b))
}

// appendBody appends a part of a body. The buffer grows as the body arrives, up to its size.
func (a *assembly) appendBody(u *deliveries.Memory, part []byte) {
	was := budgetBytes(a.body)
	a.body = deliveries.Extended(a.body, part, int(a.size))
	u.Add(budgetBytes(a.body) - was)
}

// release gives back the buffers in which a publish was assembled.
func (a *assembly) release(u *deliveries.Memory) {
	a.publication.Properties, a.publication.Body = nil, nil // they may refer to the connection's buffer
	if a.body != nil {
		u.Add(-budgetBytes(a.body))
		deliveries.RecycleBuffer(a.body)
		a.body = nil
	}
	if cap(a.properties) > ownProperties {
		u.Add(-budgetBytes(a.properties))
		deliveries.RecycleBuffer(a.properties)
		a.properties = nil
	}
}

// abandon discards an unfinished publish, or a complete one that was not published yet.
func (a *assembly) abandon(u *deliveries.Memory) {
	a.release(u)
	*a = assembly{}
}
