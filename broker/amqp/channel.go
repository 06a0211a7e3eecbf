package amqp

// Methods of class channel.
const (
	ClassChannel = 20

	ChannelOpenID    MethodID = ClassChannel<<16 | 10
	ChannelOpenOkID  MethodID = ClassChannel<<16 | 11
	ChannelFlowID    MethodID = ClassChannel<<16 | 20
	ChannelFlowOkID  MethodID = ClassChannel<<16 | 21
	ChannelCloseID   MethodID = ClassChannel<<16 | 40
	ChannelCloseOkID MethodID = ClassChannel<<16 | 41
)

type ChannelOpen struct{}

func (*ChannelOpen) ID() MethodID           { return ChannelOpenID }
func (*ChannelOpen) parse(r *reader)        { r.shortstr() } // reserved
func (*ChannelOpen) append(b []byte) []byte { return appendShortstr(b, "") }

type ChannelOpenOk struct{}

func (*ChannelOpenOk) ID() MethodID           { return ChannelOpenOkID }
func (*ChannelOpenOk) parse(r *reader)        { r.longstr() } // reserved
func (*ChannelOpenOk) append(b []byte) []byte { return appendLongstr(b, "") }

type ChannelFlow struct{ Active bool }

func (*ChannelFlow) ID() MethodID             { return ChannelFlowID }
func (m *ChannelFlow) parse(r *reader)        { r.bits(&m.Active) }
func (m *ChannelFlow) append(b []byte) []byte { return appendBits(b, m.Active) }

type ChannelFlowOk struct{ Active bool }

func (*ChannelFlowOk) ID() MethodID             { return ChannelFlowOkID }
func (m *ChannelFlowOk) parse(r *reader)        { r.bits(&m.Active) }
func (m *ChannelFlowOk) append(b []byte) []byte { return appendBits(b, m.Active) }

type ChannelClose struct{ Closing }

func (*ChannelClose) ID() MethodID { return ChannelCloseID }

type ChannelCloseOk struct{ empty }

func (*ChannelCloseOk) ID() MethodID { return ChannelCloseOkID }
