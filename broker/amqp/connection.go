package amqp

// Methods of class connection (AMQP 0-9-1 §1.4 of the reference; blocked,
// unblocked and update-secret are RabbitMQ's extensions).
const (
	ClassConnection = 10

	ConnectionStartID          MethodID = ClassConnection<<16 | 10
	ConnectionStartOkID        MethodID = ClassConnection<<16 | 11
	ConnectionSecureID         MethodID = ClassConnection<<16 | 20
	ConnectionSecureOkID       MethodID = ClassConnection<<16 | 21
	ConnectionTuneID           MethodID = ClassConnection<<16 | 30
	ConnectionTuneOkID         MethodID = ClassConnection<<16 | 31
	ConnectionOpenID           MethodID = ClassConnection<<16 | 40
	ConnectionOpenOkID         MethodID = ClassConnection<<16 | 41
	ConnectionCloseID          MethodID = ClassConnection<<16 | 50
	ConnectionCloseOkID        MethodID = ClassConnection<<16 | 51
	ConnectionBlockedID        MethodID = ClassConnection<<16 | 60
	ConnectionUnblockedID      MethodID = ClassConnection<<16 | 61
	ConnectionUpdateSecretID   MethodID = ClassConnection<<16 | 70
	ConnectionUpdateSecretOkID MethodID = ClassConnection<<16 | 71
)

// ConnectionStart offers mechanisms and locales, each list separated by spaces.
type ConnectionStart struct {
	VersionMajor, VersionMinor uint8
	ServerProperties           Table
	Mechanisms, Locales        string
}

func (*ConnectionStart) ID() MethodID { return ConnectionStartID }

func (m *ConnectionStart) parse(r *reader) {
	m.VersionMajor = r.octet()
	m.VersionMinor = r.octet()
	m.ServerProperties = r.table()
	m.Mechanisms = string(r.longstr())
	m.Locales = string(r.longstr())
}

func (m *ConnectionStart) append(b []byte) []byte {
	b = append(b, m.VersionMajor, m.VersionMinor)
	b = AppendTable(b, m.ServerProperties)
	b = appendLongstr(b, m.Mechanisms)
	return appendLongstr(b, m.Locales)
}

// ConnectionStartOk carries the first response of the chosen mechanism. For AMQPLAIN that
// is a table without its length, see ParseTableEntries.
type ConnectionStartOk struct {
	ClientProperties Table
	Mechanism        string
	Response         []byte
	Locale           string
}

func (*ConnectionStartOk) ID() MethodID { return ConnectionStartOkID }

func (m *ConnectionStartOk) parse(r *reader) {
	m.ClientProperties = r.table()
	m.Mechanism = r.string()
	m.Response = r.bytes()
	m.Locale = r.string()
}

func (m *ConnectionStartOk) append(b []byte) []byte {
	b = AppendTable(b, m.ClientProperties)
	b = appendShortstr(b, m.Mechanism)
	b = appendLongstr(b, m.Response)
	return appendShortstr(b, m.Locale)
}

type ConnectionSecure struct{ Challenge []byte }

func (*ConnectionSecure) ID() MethodID             { return ConnectionSecureID }
func (m *ConnectionSecure) parse(r *reader)        { m.Challenge = r.bytes() }
func (m *ConnectionSecure) append(b []byte) []byte { return appendLongstr(b, m.Challenge) }

type ConnectionSecureOk struct{ Response []byte }

func (*ConnectionSecureOk) ID() MethodID             { return ConnectionSecureOkID }
func (m *ConnectionSecureOk) parse(r *reader)        { m.Response = r.bytes() }
func (m *ConnectionSecureOk) append(b []byte) []byte { return appendLongstr(b, m.Response) }

// Tuning is what tune offers and tune-ok agrees on: the highest channel number, the largest
// frame in octets with its overhead, and the heartbeat interval in seconds. 0 means no
// limit, or no heartbeat.
type Tuning struct {
	ChannelMax uint16
	FrameMax   uint32
	Heartbeat  uint16
}

func (t *Tuning) parse(r *reader) {
	t.ChannelMax = r.short()
	t.FrameMax = r.long()
	t.Heartbeat = r.short()
}

func (t *Tuning) append(b []byte) []byte {
	b = appendShort(b, t.ChannelMax)
	b = appendLong(b, t.FrameMax)
	return appendShort(b, t.Heartbeat)
}

type ConnectionTune struct{ Tuning }

func (*ConnectionTune) ID() MethodID { return ConnectionTuneID }

type ConnectionTuneOk struct{ Tuning }

func (*ConnectionTuneOk) ID() MethodID { return ConnectionTuneOkID }

type ConnectionOpen struct{ VirtualHost string }

func (*ConnectionOpen) ID() MethodID { return ConnectionOpenID }

func (m *ConnectionOpen) parse(r *reader) {
	m.VirtualHost = r.string()
	r.shortstr() // reserved
	r.bits()     // reserved
}

func (m *ConnectionOpen) append(b []byte) []byte {
	b = appendShortstr(b, m.VirtualHost)
	b = appendShortstr(b, "")
	return appendBits(b)
}

type ConnectionOpenOk struct{}

func (*ConnectionOpenOk) ID() MethodID           { return ConnectionOpenOkID }
func (*ConnectionOpenOk) parse(r *reader)        { r.shortstr() } // reserved
func (*ConnectionOpenOk) append(b []byte) []byte { return appendShortstr(b, "") }

// Closing is the reason why a connection or a channel closes, and the method that caused it
// (both 0 for none). ReplyText is cut to 255 octets when it is written.
type Closing struct {
	ReplyCode         uint16
	ReplyText         string
	ClassID, MethodID uint16
}

func (c *Closing) parse(r *reader) {
	c.ReplyCode = r.short()
	c.ReplyText = r.string()
	c.ClassID = r.short()
	c.MethodID = r.short()
}

func (c *Closing) append(b []byte) []byte {
	b = appendShort(b, c.ReplyCode)
	b = appendText(b, c.ReplyText)
	b = appendShort(b, c.ClassID)
	return appendShort(b, c.MethodID)
}

type ConnectionClose struct{ Closing }

func (*ConnectionClose) ID() MethodID { return ConnectionCloseID }

type ConnectionCloseOk struct{ empty }

func (*ConnectionCloseOk) ID() MethodID { return ConnectionCloseOkID }

// ConnectionBlocked notifies a client that announced the capability connection.blocked that
// its publishes are not being read.
type ConnectionBlocked struct{ Reason string }

func (*ConnectionBlocked) ID() MethodID             { return ConnectionBlockedID }
func (m *ConnectionBlocked) parse(r *reader)        { m.Reason = r.string() }
func (m *ConnectionBlocked) append(b []byte) []byte { return appendText(b, m.Reason) }

type ConnectionUnblocked struct{ empty }

func (*ConnectionUnblocked) ID() MethodID { return ConnectionUnblockedID }

type ConnectionUpdateSecret struct {
	NewSecret []byte
	Reason    string
}

func (*ConnectionUpdateSecret) ID() MethodID { return ConnectionUpdateSecretID }

func (m *ConnectionUpdateSecret) parse(r *reader) {
	m.NewSecret = r.bytes()
	m.Reason = r.string()
}

func (m *ConnectionUpdateSecret) append(b []byte) []byte {
	return appendText(appendLongstr(b, m.NewSecret), m.Reason)
}

type ConnectionUpdateSecretOk struct{ empty }

func (*ConnectionUpdateSecretOk) ID() MethodID { return ConnectionUpdateSecretOkID }

// empty is the argument list of a method that has none.
type empty struct{}

func (empty) parse(*reader)          {}
func (empty) append(b []byte) []byte { return b }
