package amqp

// Methods of class exchange. Bind and unbind are RabbitMQ's extension
// (Exchange to Exchange Bindings); unbind-ok really is 51.
const (
	ClassExchange = 40

	ExchangeDeclareID   MethodID = ClassExchange<<16 | 10
	ExchangeDeclareOkID MethodID = ClassExchange<<16 | 11
	ExchangeDeleteID    MethodID = ClassExchange<<16 | 20
	ExchangeDeleteOkID  MethodID = ClassExchange<<16 | 21
	ExchangeBindID      MethodID = ClassExchange<<16 | 30
	ExchangeBindOkID    MethodID = ClassExchange<<16 | 31
	ExchangeUnbindID    MethodID = ClassExchange<<16 | 40
	ExchangeUnbindOkID  MethodID = ClassExchange<<16 | 51
)

type ExchangeDeclare struct {
	Exchange, Type                                 string
	Passive, Durable, AutoDelete, Internal, NoWait bool
	Arguments                                      Table
}

func (*ExchangeDeclare) ID() MethodID { return ExchangeDeclareID }

func (m *ExchangeDeclare) parse(r *reader) {
	r.short() // reserved
	m.Exchange = r.string()
	m.Type = r.string()
	r.bits(&m.Passive, &m.Durable, &m.AutoDelete, &m.Internal, &m.NoWait)
	m.Arguments = r.table()
}

func (m *ExchangeDeclare) append(b []byte) []byte {
	b = appendShort(b, 0)
	b = appendShortstr(b, m.Exchange)
	b = appendShortstr(b, m.Type)
	b = appendBits(b, m.Passive, m.Durable, m.AutoDelete, m.Internal, m.NoWait)
	return AppendTable(b, m.Arguments)
}

type ExchangeDeclareOk struct{ empty }

func (*ExchangeDeclareOk) ID() MethodID { return ExchangeDeclareOkID }

type ExchangeDelete struct {
	Exchange         string
	IfUnused, NoWait bool
}

func (*ExchangeDelete) ID() MethodID { return ExchangeDeleteID }

func (m *ExchangeDelete) parse(r *reader) {
	r.short() // reserved
	m.Exchange = r.string()
	r.bits(&m.IfUnused, &m.NoWait)
}

func (m *ExchangeDelete) append(b []byte) []byte {
	b = appendShort(b, 0)
	b = appendShortstr(b, m.Exchange)
	return appendBits(b, m.IfUnused, m.NoWait)
}

type ExchangeDeleteOk struct{ empty }

func (*ExchangeDeleteOk) ID() MethodID { return ExchangeDeleteOkID }

// ExchangeBinding is the binding that exchange.bind adds and exchange.unbind removes:
// messages flow from Source to Destination.
type ExchangeBinding struct {
	Destination, Source, RoutingKey string
	NoWait                          bool
	Arguments                       Table
}

func (m *ExchangeBinding) parse(r *reader) {
	r.short() // reserved
	m.Destination = r.string()
	m.Source = r.string()
	m.RoutingKey = r.string()
	r.bits(&m.NoWait)
	m.Arguments = r.table()
}

func (m *ExchangeBinding) append(b []byte) []byte {
	b = appendShort(b, 0)
	b = appendShortstr(b, m.Destination)
	b = appendShortstr(b, m.Source)
	b = appendShortstr(b, m.RoutingKey)
	b = appendBits(b, m.NoWait)
	return AppendTable(b, m.Arguments)
}

type ExchangeBind struct{ ExchangeBinding }

func (*ExchangeBind) ID() MethodID { return ExchangeBindID }

type ExchangeBindOk struct{ empty }

func (*ExchangeBindOk) ID() MethodID { return ExchangeBindOkID }

type ExchangeUnbind struct{ ExchangeBinding }

func (*ExchangeUnbind) ID() MethodID { return ExchangeUnbindID }

type ExchangeUnbindOk struct{ empty }

func (*ExchangeUnbindOk) ID() MethodID { return ExchangeUnbindOkID }
