package amqp

// Methods of class queue.
const (
	ClassQueue = 50

	QueueDeclareID   MethodID = ClassQueue<<16 | 10
	QueueDeclareOkID MethodID = ClassQueue<<16 | 11
	QueueBindID      MethodID = ClassQueue<<16 | 20
	QueueBindOkID    MethodID = ClassQueue<<16 | 21
	QueuePurgeID     MethodID = ClassQueue<<16 | 30
	QueuePurgeOkID   MethodID = ClassQueue<<16 | 31
	QueueDeleteID    MethodID = ClassQueue<<16 | 40
	QueueDeleteOkID  MethodID = ClassQueue<<16 | 41
	QueueUnbindID    MethodID = ClassQueue<<16 | 50
	QueueUnbindOkID  MethodID = ClassQueue<<16 | 51
)

// QueueDeclare is a queue.declare. With an empty Queue it asks the server for a name. In
// the other methods an empty name means the queue that the channel declared last.
type QueueDeclare struct {
	Queue                                           string
	Passive, Durable, Exclusive, AutoDelete, NoWait bool
	Arguments                                       Table
}

func (*QueueDeclare) ID() MethodID { return QueueDeclareID }

func (m *QueueDeclare) parse(r *reader) {
	r.short() // reserved
	m.Queue = r.string()
	r.bits(&m.Passive, &m.Durable, &m.Exclusive, &m.AutoDelete, &m.NoWait)
	m.Arguments = r.table()
}

func (m *QueueDeclare) append(b []byte) []byte {
	b = appendShort(b, 0)
	b = appendShortstr(b, m.Queue)
	b = appendBits(b, m.Passive, m.Durable, m.Exclusive, m.AutoDelete, m.NoWait)
	return AppendTable(b, m.Arguments)
}

// QueueDeclareOk is a queue.declare-ok. It has the number of ready messages.
type QueueDeclareOk struct {
	Queue                       string
	MessageCount, ConsumerCount uint32
}

func (*QueueDeclareOk) ID() MethodID { return QueueDeclareOkID }

func (m *QueueDeclareOk) parse(r *reader) {
	m.Queue = r.string()
	m.MessageCount = r.long()
	m.ConsumerCount = r.long()
}

func (m *QueueDeclareOk) append(b []byte) []byte {
	b = appendShortstr(b, m.Queue)
	b = appendLong(b, m.MessageCount)
	return appendLong(b, m.ConsumerCount)
}

type QueueBind struct {
	Queue, Exchange, RoutingKey string
	NoWait                      bool
	Arguments                   Table
}

func (*QueueBind) ID() MethodID { return QueueBindID }

func (m *QueueBind) parse(r *reader) {
	r.short() // reserved
	m.Queue = r.string()
	m.Exchange = r.string()
	m.RoutingKey = r.string()
	r.bits(&m.NoWait)
	m.Arguments = r.table()
}

func (m *QueueBind) append(b []byte) []byte {
	b = appendShort(b, 0)
	b = appendShortstr(b, m.Queue)
	b = appendShortstr(b, m.Exchange)
	b = appendShortstr(b, m.RoutingKey)
	b = appendBits(b, m.NoWait)
	return AppendTable(b, m.Arguments)
}

type QueueBindOk struct{ empty }

func (*QueueBindOk) ID() MethodID { return QueueBindOkID }

type QueuePurge struct {
	Queue  string
	NoWait bool
}

func (*QueuePurge) ID() MethodID { return QueuePurgeID }

func (m *QueuePurge) parse(r *reader) {
	r.short() // reserved
	m.Queue = r.string()
	r.bits(&m.NoWait)
}

func (m *QueuePurge) append(b []byte) []byte {
	b = appendShort(b, 0)
	b = appendShortstr(b, m.Queue)
	return appendBits(b, m.NoWait)
}

type QueuePurgeOk struct{ MessageCount uint32 }

func (*QueuePurgeOk) ID() MethodID             { return QueuePurgeOkID }
func (m *QueuePurgeOk) parse(r *reader)        { m.MessageCount = r.long() }
func (m *QueuePurgeOk) append(b []byte) []byte { return appendLong(b, m.MessageCount) }

type QueueDelete struct {
	Queue                     string
	IfUnused, IfEmpty, NoWait bool
}

func (*QueueDelete) ID() MethodID { return QueueDeleteID }

func (m *QueueDelete) parse(r *reader) {
	r.short() // reserved
	m.Queue = r.string()
	r.bits(&m.IfUnused, &m.IfEmpty, &m.NoWait)
}

func (m *QueueDelete) append(b []byte) []byte {
	b = appendShort(b, 0)
	b = appendShortstr(b, m.Queue)
	return appendBits(b, m.IfUnused, m.IfEmpty, m.NoWait)
}

type QueueDeleteOk struct{ MessageCount uint32 }

func (*QueueDeleteOk) ID() MethodID             { return QueueDeleteOkID }
func (m *QueueDeleteOk) parse(r *reader)        { m.MessageCount = r.long() }
func (m *QueueDeleteOk) append(b []byte) []byte { return appendLong(b, m.MessageCount) }

// QueueUnbind has no no-wait bit.
type QueueUnbind struct {
	Queue, Exchange, RoutingKey string
	Arguments                   Table
}

func (*QueueUnbind) ID() MethodID { return QueueUnbindID }

func (m *QueueUnbind) parse(r *reader) {
	r.short() // reserved
	m.Queue = r.string()
	m.Exchange = r.string()
	m.RoutingKey = r.string()
	m.Arguments = r.table()
}

func (m *QueueUnbind) append(b []byte) []byte {
	b = appendShort(b, 0)
	b = appendShortstr(b, m.Queue)
	b = appendShortstr(b, m.Exchange)
	b = appendShortstr(b, m.RoutingKey)
	return AppendTable(b, m.Arguments)
}

type QueueUnbindOk struct{ empty }

func (*QueueUnbindOk) ID() MethodID { return QueueUnbindOkID }
