package amqp

// Methods of class confirm, RabbitMQ's extension (Publisher Confirms).
const (
	ClassConfirm = 85

	ConfirmSelectID   MethodID = ClassConfirm<<16 | 10
	ConfirmSelectOkID MethodID = ClassConfirm<<16 | 11
)

type ConfirmSelect struct{ NoWait bool }

func (*ConfirmSelect) ID() MethodID             { return ConfirmSelectID }
func (m *ConfirmSelect) parse(r *reader)        { r.bits(&m.NoWait) }
func (m *ConfirmSelect) append(b []byte) []byte { return appendBits(b, m.NoWait) }

type ConfirmSelectOk struct{ empty }

func (*ConfirmSelectOk) ID() MethodID { return ConfirmSelectOkID }
