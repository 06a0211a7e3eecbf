package amqp

// Each method has a struct that is named after it. Its fields are its arguments in order, with the specification's names; those
// called _ are reserved: ignored when a method is read, and written as zero. A field's type says how it stands in the frame, and
// its tag says of a text that it is long, that it may be any octets and not only UTF-8, which RabbitMQ requires of names, or that
// it is for people and is cut to 255 octets when it is written.

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
	Mechanisms, Locales        string `amqp:"long"`
}

// ConnectionStartOk carries the first response of the chosen mechanism. For AMQPLAIN that
// is a table without its length, see ParseTableEntries.
type ConnectionStartOk struct {
	ClientProperties Table
	Mechanism        string
	Response         []byte
	Locale           string
}

// Tuning is what tune offers and tune-ok agrees on: the highest channel number, the largest
// frame in octets with its overhead, and the heartbeat interval in seconds. 0 means no
// limit, or no heartbeat.
type Tuning struct {
	ChannelMax uint16
	FrameMax   uint32
	Heartbeat  uint16
}

type ConnectionOpen struct {
	VirtualHost string
	_           string
	_           bool
}

// Closing is the reason why a connection or a channel closes, and the method that caused it
// (both 0 for none).
type Closing struct {
	ReplyCode         uint16
	ReplyText         string `amqp:"cut"`
	ClassID, MethodID uint16
}

type ConnectionUpdateSecret struct {
	NewSecret []byte
	Reason    string `amqp:"cut"`
}

type (
	ConnectionSecure   struct{ Challenge []byte }
	ConnectionSecureOk struct{ Response []byte }
	ConnectionTune     struct{ Tuning }
	ConnectionTuneOk   struct{ Tuning }
	ConnectionOpenOk   struct{ _ string }
	ConnectionClose    struct{ Closing }
	ConnectionCloseOk  struct{}
	// ConnectionBlocked notifies a client that announced the capability connection.blocked that
	// its publishes are not being read.
	ConnectionBlocked struct {
		Reason string `amqp:"cut"`
	}
	ConnectionUnblocked      struct{}
	ConnectionUpdateSecretOk struct{}
)

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

type (
	ChannelOpen   struct{ _ string }
	ChannelOpenOk struct {
		_ string `amqp:"long"`
	}
	ChannelFlow    struct{ Active bool }
	ChannelFlowOk  struct{ Active bool }
	ChannelClose   struct{ Closing }
	ChannelCloseOk struct{}
)

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
	_                                              uint16
	Exchange, Type                                 string
	Passive, Durable, AutoDelete, Internal, NoWait bool
	Arguments                                      Table
}

type ExchangeDelete struct {
	_                uint16
	Exchange         string
	IfUnused, NoWait bool
}

// ExchangeBinding is the binding that exchange.bind adds and exchange.unbind removes:
// messages flow from Source to Destination.
type ExchangeBinding struct {
	_                               uint16
	Destination, Source, RoutingKey string
	NoWait                          bool
	Arguments                       Table
}

type (
	ExchangeDeclareOk struct{}
	ExchangeDeleteOk  struct{}
	ExchangeBind      struct{ ExchangeBinding }
	ExchangeBindOk    struct{}
	ExchangeUnbind    struct{ ExchangeBinding }
	ExchangeUnbindOk  struct{}
)

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
	_                                               uint16
	Queue                                           string
	Passive, Durable, Exclusive, AutoDelete, NoWait bool
	Arguments                                       Table
}

// QueueDeclareOk is a queue.declare-ok. It has the number of ready messages.
type QueueDeclareOk struct {
	Queue                       string
	MessageCount, ConsumerCount uint32
}

type QueueBind struct {
	_                           uint16
	Queue, Exchange, RoutingKey string
	NoWait                      bool
	Arguments                   Table
}

type QueuePurge struct {
	_      uint16
	Queue  string
	NoWait bool
}

type QueueDelete struct {
	_                         uint16
	Queue                     string
	IfUnused, IfEmpty, NoWait bool
}

// QueueUnbind has no no-wait bit.
type QueueUnbind struct {
	_                           uint16
	Queue, Exchange, RoutingKey string
	Arguments                   Table
}

type (
	QueueBindOk   struct{}
	QueuePurgeOk  struct{ MessageCount uint32 }
	QueueDeleteOk struct{ MessageCount uint32 }
	QueueUnbindOk struct{}
)

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

type BasicConsume struct {
	_                                 uint16
	Queue, ConsumerTag                string
	NoLocal, NoAck, Exclusive, NoWait bool
	Arguments                         Table
}

// BasicCancel also goes from the server to a client that announced the
// capability consumer_cancel_notify.
type BasicCancel struct {
	ConsumerTag string
	NoWait      bool
}

type BasicPublish struct {
	_                    uint16
	Exchange, RoutingKey string `amqp:"octets"`
	Mandatory, Immediate bool
}

type BasicReturn struct {
	ReplyCode            uint16
	ReplyText            string `amqp:"octets,cut"`
	Exchange, RoutingKey string `amqp:"octets"`
}

type BasicDeliver struct {
	ConsumerTag          string
	DeliveryTag          uint64
	Redelivered          bool
	Exchange, RoutingKey string `amqp:"octets"`
}

type BasicGet struct {
	_     uint16
	Queue string
	NoAck bool
}

// BasicGetOk is a basic.get-ok. It has the number of ready messages left in the queue.
type BasicGetOk struct {
	DeliveryTag          uint64
	Redelivered          bool
	Exchange, RoutingKey string `amqp:"octets"`
	MessageCount         uint32
}

// BasicAck is a basic.ack, in both directions: it settles deliveries and confirms
// publishes.
type BasicAck struct {
	DeliveryTag uint64
	Multiple    bool
}

type BasicReject struct {
	DeliveryTag uint64
	Requeue     bool
}

// BasicNack is a basic.nack, in both directions. Requeue has no meaning in a confirm.
type BasicNack struct {
	DeliveryTag       uint64
	Multiple, Requeue bool
}

type (
	BasicQosOk        struct{}
	BasicConsumeOk    struct{ ConsumerTag string }
	BasicCancelOk     struct{ ConsumerTag string }
	BasicGetEmpty     struct{ _ string }
	BasicRecoverAsync struct{ Requeue bool }
	BasicRecover      struct{ Requeue bool }
	BasicRecoverOk    struct{}
)

// Methods of class confirm, RabbitMQ's extension (Publisher Confirms).
const (
	ClassConfirm = 85

	ConfirmSelectID   MethodID = ClassConfirm<<16 | 10
	ConfirmSelectOkID MethodID = ClassConfirm<<16 | 11
)

// Methods of class tx.
const (
	ClassTx = 90

	TxSelectID     MethodID = ClassTx<<16 | 10
	TxSelectOkID   MethodID = ClassTx<<16 | 11
	TxCommitID     MethodID = ClassTx<<16 | 20
	TxCommitOkID   MethodID = ClassTx<<16 | 21
	TxRollbackID   MethodID = ClassTx<<16 | 30
	TxRollbackOkID MethodID = ClassTx<<16 | 31
)

type (
	ConfirmSelect   struct{ NoWait bool }
	ConfirmSelectOk struct{}
	TxSelect        struct{}
	TxSelectOk      struct{}
	TxCommit        struct{}
	TxCommitOk      struct{}
	TxRollback      struct{}
	TxRollbackOk    struct{}
)
