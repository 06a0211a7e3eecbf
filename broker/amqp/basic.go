package amqp

// Methods of class basic; nack is RabbitMQ's extension (Negative Acknowledgements). Methods
// that come with every message also have functions that allocate nothing, such as
// ParsePublish and AppendDeliver. Their structs here are for clients and tests.
const (
	ClassBasic = 60

	BasicQosID          MethodID = ClassBasic<<16 | 10
	BasicQosOkID        MethodID = ClassBasic<<16 | 11
	BasicConsumeID      MethodID = ClassBasic<<16 | 20
	BasicConsumeOkID    MethodID = ClassBasic<<16 | 21
	BasicCancelID       MethodID = ClassBasic<<16 | 30
	BasicCancelOkID     MethodID = ClassBasic<<16 | 31
	BasicPublishID      MethodID = ClassBasic<<16 | 40
	BasicReturnID       MethodID = ClassBasic<<16 | 50
	BasicDeliverID      MethodID = ClassBasic<<16 | 60
	BasicGetID          MethodID = ClassBasic<<16 | 70
	BasicGetOkID        MethodID = ClassBasic<<16 | 71
	BasicGetEmptyID     MethodID = ClassBasic<<16 | 72
	BasicAckID          MethodID = ClassBasic<<16 | 80
	BasicRejectID       MethodID = ClassBasic<<16 | 90
	BasicRecoverAsyncID MethodID = ClassBasic<<16 | 100
	BasicRecoverID      MethodID = ClassBasic<<16 | 110
	BasicRecoverOkID    MethodID = ClassBasic<<16 | 111
	BasicNackID         MethodID = ClassBasic<<16 | 120
)

// BasicQos with Global false applies to each consumer separately (RabbitMQ: Consumer
// Prefetch). PrefetchSize is in octets.
type BasicQos struct {
	PrefetchSize  uint32
	PrefetchCount uint16
	Global        bool
}

func (*BasicQos) ID() MethodID { return BasicQosID }

func (m *BasicQos) parse(r *reader) {
	m.PrefetchSize = r.long()
	m.PrefetchCount = r.short()
	r.bits(&m.Global)
}

func (m *BasicQos) append(b []byte) []byte {
	b = appendLong(b, m.PrefetchSize)
	b = appendShort(b, m.PrefetchCount)
	return appendBits(b, m.Global)
}

type BasicQosOk struct{ empty }

func (*BasicQosOk) ID() MethodID { return BasicQosOkID }

type BasicConsume struct {
	Queue, ConsumerTag                string
	NoLocal, NoAck, Exclusive, NoWait bool
	Arguments                         Table
}

func (*BasicConsume) ID() MethodID { return BasicConsumeID }

func (m *BasicConsume) parse(r *reader) {
	r.short() // reserved
	m.Queue = r.string()
	m.ConsumerTag = r.string()
	r.bits(&m.NoLocal, &m.NoAck, &m.Exclusive, &m.NoWait)
	m.Arguments = r.table()
}

func (m *BasicConsume) append(b []byte) []byte {
	b = appendShort(b, 0)
	b = appendShortstr(b, m.Queue)
	b = appendShortstr(b, m.ConsumerTag)
	b = appendBits(b, m.NoLocal, m.NoAck, m.Exclusive, m.NoWait)
	return AppendTable(b, m.Arguments)
}

type BasicConsumeOk struct{ ConsumerTag string }

func (*BasicConsumeOk) ID() MethodID             { return BasicConsumeOkID }
func (m *BasicConsumeOk) parse(r *reader)        { m.ConsumerTag = r.string() }
func (m *BasicConsumeOk) append(b []byte) []byte { return appendShortstr(b, m.ConsumerTag) }

// BasicCancel also goes from the server to a client that announced the
// capability consumer_cancel_notify.
type BasicCancel struct {
	ConsumerTag string
	NoWait      bool
}

func (*BasicCancel) ID() MethodID { return BasicCancelID }

func (m *BasicCancel) parse(r *reader) {
	m.ConsumerTag = r.string()
	r.bits(&m.NoWait)
}

func (m *BasicCancel) append(b []byte) []byte {
	return appendBits(appendShortstr(b, m.ConsumerTag), m.NoWait)
}

type BasicCancelOk struct{ ConsumerTag string }

func (*BasicCancelOk) ID() MethodID             { return BasicCancelOkID }
func (m *BasicCancelOk) parse(r *reader)        { m.ConsumerTag = r.string() }
func (m *BasicCancelOk) append(b []byte) []byte { return appendShortstr(b, m.ConsumerTag) }

type BasicPublish struct {
	Exchange, RoutingKey string
	Mandatory, Immediate bool
}

func (*BasicPublish) ID() MethodID { return BasicPublishID }

func (m *BasicPublish) parse(r *reader) {
	r.short() // reserved
	m.Exchange = r.text()
	m.RoutingKey = r.text()
	r.bits(&m.Mandatory, &m.Immediate)
}

func (m *BasicPublish) append(b []byte) []byte {
	b = appendShort(b, 0)
	b = appendShortstr(b, m.Exchange)
	b = appendShortstr(b, m.RoutingKey)
	return appendBits(b, m.Mandatory, m.Immediate)
}

// BasicReturn is a basic.return. Its ReplyText is cut to 255 octets when it is written.
type BasicReturn struct {
	ReplyCode            uint16
	ReplyText            string
	Exchange, RoutingKey string
}

func (*BasicReturn) ID() MethodID { return BasicReturnID }

func (m *BasicReturn) parse(r *reader) {
	m.ReplyCode = r.short()
	m.ReplyText = r.text()
	m.Exchange = r.text()
	m.RoutingKey = r.text()
}

func (m *BasicReturn) append(b []byte) []byte {
	b = appendShort(b, m.ReplyCode)
	b = appendText(b, m.ReplyText)
	b = appendShortstr(b, m.Exchange)
	return appendShortstr(b, m.RoutingKey)
}

type BasicDeliver struct {
	ConsumerTag          string
	DeliveryTag          uint64
	Redelivered          bool
	Exchange, RoutingKey string
}

func (*BasicDeliver) ID() MethodID { return BasicDeliverID }

func (m *BasicDeliver) parse(r *reader) {
	m.ConsumerTag = r.string()
	m.DeliveryTag = r.longlong()
	r.bits(&m.Redelivered)
	m.Exchange = r.text()
	m.RoutingKey = r.text()
}

func (m *BasicDeliver) append(b []byte) []byte {
	b = appendShortstr(b, m.ConsumerTag)
	b = appendLonglong(b, m.DeliveryTag)
	b = appendBits(b, m.Redelivered)
	b = appendShortstr(b, m.Exchange)
	return appendShortstr(b, m.RoutingKey)
}
