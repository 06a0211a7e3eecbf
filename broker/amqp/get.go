package amqp

type BasicGet struct {
	Queue string
	NoAck bool
}

func (*BasicGet) ID() MethodID { return BasicGetID }

func (m *BasicGet) parse(r *reader) {
	r.short() // reserved
	m.Queue = r.string()
	r.bits(&m.NoAck)
}

func (m *BasicGet) append(b []byte) []byte {
	b = appendShort(b, 0)
	b = appendShortstr(b, m.Queue)
	return appendBits(b, m.NoAck)
}

// BasicGetOk is a basic.get-ok. It has the number of ready messages left in the queue.
type BasicGetOk struct {
	DeliveryTag          uint64
	Redelivered          bool
	Exchange, RoutingKey string
	MessageCount         uint32
}

func (*BasicGetOk) ID() MethodID { return BasicGetOkID }

func (m *BasicGetOk) parse(r *reader) {
	m.DeliveryTag = r.longlong()
	r.bits(&m.Redelivered)
	m.Exchange = r.text()
	m.RoutingKey = r.text()
	m.MessageCount = r.long()
}

func (m *BasicGetOk) append(b []byte) []byte {
	b = appendLonglong(b, m.DeliveryTag)
	b = appendBits(b, m.Redelivered)
	b = appendShortstr(b, m.Exchange)
	b = appendShortstr(b, m.RoutingKey)
	return appendLong(b, m.MessageCount)
}

type BasicGetEmpty struct{}

func (*BasicGetEmpty) ID() MethodID           { return BasicGetEmptyID }
func (*BasicGetEmpty) parse(r *reader)        { r.shortstr() } // reserved
func (*BasicGetEmpty) append(b []byte) []byte { return appendShortstr(b, "") }
