package amqp

import (
	"encoding/binary"
	"fmt"
)

// MethodID is class<<16 | method.
type MethodID uint32

func (id MethodID) Class() uint16  { return uint16(id >> 16) }
func (id MethodID) Method() uint16 { return uint16(id) }

// String returns the name as the specification writes it, "queue.declare-ok".
func (id MethodID) String() string {
	if known, ok := methods[id]; ok {
		return known.name
	}
	return fmt.Sprintf("method %d.%d", id.Class(), id.Method())
}

// Method is a pointer to one of this package's structs that are named after a method, such
// as *QueueDeclare. The structs have no reserved fields: these are ignored when reading and
// written as zero.
type Method interface {
	ID() MethodID
	parse(*reader)
	append([]byte) []byte
}

// PeekMethod returns the method of a method frame's payload, whether it is known or not. A
// payload that is too short is an *Exception 501 FRAME_ERROR.
func PeekMethod(payload []byte) (MethodID, error) {
	if len(payload) < 4 {
		return 0, frameError(FrameMethod, payload, "unknown_frame")
	}
	return MethodID(binary.BigEndian.Uint32(payload)), nil
}

// ParseMethod parses a method frame's payload, of either direction. The result does not
// alias payload. The error is an *Exception: 540 NOT_IMPLEMENTED for an unknown method; 502
// SYNTAX_ERROR for arguments that are truncated, have anything after them or exceed lim;
// and, as in RabbitMQ, 501 FRAME_ERROR for a name that is not UTF-8.
func ParseMethod(payload []byte, lim Limits) (Method, error) {
	id, err := PeekMethod(payload)
	if err != nil {
		return nil, err
	}
	known, ok := methods[id]
	if !ok {
		return nil, NewException(NotImplemented, id.Class(), id.Method(), "unknown %s", id)
	}
	m := known.make()
	r := reader{cursor: cursor{rest: payload[4:]}, limits: lim}
	m.parse(&r)
	if err := r.done(id); err != nil {
		return nil, err
	}
	return m, nil
}

// AppendMethod appends the whole frame of m. It panics on a short string of more than 255
// octets and on a table value without an AMQP type. The texts of close and return are cut
// instead.
func AppendMethod(b []byte, channel uint16, m Method) []byte {
	start := len(b)
	b = beginFrame(b, FrameMethod, channel)
	b = appendLong(b, uint32(m.ID()))
	return endFrame(m.append(b), start)
}

type methodKind struct {
	name string
	make func() Method
}

// methods has every method of AMQP 0-9-1, and of RabbitMQ's extensions that clients use
// today. The class access, which 0-9-1 dropped, is not included.
var methods = map[MethodID]methodKind{
	ConnectionStartID:          {"connection.start", func() Method { return new(ConnectionStart) }},
	ConnectionStartOkID:        {"connection.start-ok", func() Method { return new(ConnectionStartOk) }},
	ConnectionSecureID:         {"connection.secure", func() Method { return new(ConnectionSecure) }},
	ConnectionSecureOkID:       {"connection.secure-ok", func() Method { return new(ConnectionSecureOk) }},
	ConnectionTuneID:           {"connection.tune", func() Method { return new(ConnectionTune) }},
	ConnectionTuneOkID:         {"connection.tune-ok", func() Method { return new(ConnectionTuneOk) }},
	ConnectionOpenID:           {"connection.open", func() Method { return new(ConnectionOpen) }},
	ConnectionOpenOkID:         {"connection.open-ok", func() Method { return new(ConnectionOpenOk) }},
	ConnectionCloseID:          {"connection.close", func() Method { return new(ConnectionClose) }},
	ConnectionCloseOkID:        {"connection.close-ok", func() Method { return new(ConnectionCloseOk) }},
	ConnectionBlockedID:        {"connection.blocked", func() Method { return new(ConnectionBlocked) }},
	ConnectionUnblockedID:      {"connection.unblocked", func() Method { return new(ConnectionUnblocked) }},
	ConnectionUpdateSecretID:   {"connection.update-secret", func() Method { return new(ConnectionUpdateSecret) }},
	ConnectionUpdateSecretOkID: {"connection.update-secret-ok", func() Method { return new(ConnectionUpdateSecretOk) }},
	ChannelOpenID:              {"channel.open", func() Method { return new(ChannelOpen) }},
	ChannelOpenOkID:            {"channel.open-ok", func() Method { return new(ChannelOpenOk) }},
	ChannelFlowID:              {"channel.flow", func() Method { return new(ChannelFlow) }},
	ChannelFlowOkID:            {"channel.flow-ok", func() Method { return new(ChannelFlowOk) }},
	ChannelCloseID:             {"channel.close", func() Method { return new(ChannelClose) }},
	ChannelCloseOkID:           {"channel.close-ok", func() Method { return new(ChannelCloseOk) }},
	ExchangeDeclareID:          {"exchange.declare", func() Method { return new(ExchangeDeclare) }},
	ExchangeDeclareOkID:        {"exchange.declare-ok", func() Method { return new(ExchangeDeclareOk) }},
	ExchangeDeleteID:           {"exchange.delete", func() Method { return new(ExchangeDelete) }},
	ExchangeDeleteOkID:         {"exchange.delete-ok", func() Method { return new(ExchangeDeleteOk) }},
	ExchangeBindID:             {"exchange.bind", func() Method { return new(ExchangeBind) }},
	ExchangeBindOkID:           {"exchange.bind-ok", func() Method { return new(ExchangeBindOk) }},
	ExchangeUnbindID:           {"exchange.unbind", func() Method { return new(ExchangeUnbind) }},
	ExchangeUnbindOkID:         {"exchange.unbind-ok", func() Method { return new(ExchangeUnbindOk) }},
	QueueDeclareID:             {"queue.declare", func() Method { return new(QueueDeclare) }},
	QueueDeclareOkID:           {"queue.declare-ok", func() Method { return new(QueueDeclareOk) }},
	QueueBindID:                {"queue.bind", func() Method { return new(QueueBind) }},
	QueueBindOkID:              {"queue.bind-ok", func() Method { return new(QueueBindOk) }},
	QueuePurgeID:               {"queue.purge", func() Method { return new(QueuePurge) }},
	QueuePurgeOkID:             {"queue.purge-ok", func() Method { return new(QueuePurgeOk) }},
	QueueDeleteID:              {"queue.delete", func() Method { return new(QueueDelete) }},
	QueueDeleteOkID:            {"queue.delete-ok", func() Method { return new(QueueDeleteOk) }},
	QueueUnbindID:              {"queue.unbind", func() Method { return new(QueueUnbind) }},
	QueueUnbindOkID:            {"queue.unbind-ok", func() Method { return new(QueueUnbindOk) }},
	BasicQosID:                 {"basic.qos", func() Method { return new(BasicQos) }},
	BasicQosOkID:               {"basic.qos-ok", func() Method { return new(BasicQosOk) }},
	BasicConsumeID:             {"basic.consume", func() Method { return new(BasicConsume) }},
	BasicConsumeOkID:           {"basic.consume-ok", func() Method { return new(BasicConsumeOk) }},
	BasicCancelID:              {"basic.cancel", func() Method { return new(BasicCancel) }},
	BasicCancelOkID:            {"basic.cancel-ok", func() Method { return new(BasicCancelOk) }},
	BasicPublishID:             {"basic.publish", func() Method { return new(BasicPublish) }},
	BasicReturnID:              {"basic.return", func() Method { return new(BasicReturn) }},
	BasicDeliverID:             {"basic.deliver", func() Method { return new(BasicDeliver) }},
	BasicGetID:                 {"basic.get", func() Method { return new(BasicGet) }},
	BasicGetOkID:               {"basic.get-ok", func() Method { return new(BasicGetOk) }},
	BasicGetEmptyID:            {"basic.get-empty", func() Method { return new(BasicGetEmpty) }},
	BasicAckID:                 {"basic.ack", func() Method { return new(BasicAck) }},
	BasicRejectID:              {"basic.reject", func() Method { return new(BasicReject) }},
	BasicRecoverAsyncID:        {"basic.recover-async", func() Method { return new(BasicRecoverAsync) }},
	BasicRecoverID:             {"basic.recover", func() Method { return new(BasicRecover) }},
	BasicRecoverOkID:           {"basic.recover-ok", func() Method { return new(BasicRecoverOk) }},
	BasicNackID:                {"basic.nack", func() Method { return new(BasicNack) }},
	ConfirmSelectID:            {"confirm.select", func() Method { return new(ConfirmSelect) }},
	ConfirmSelectOkID:          {"confirm.select-ok", func() Method { return new(ConfirmSelectOk) }},
	TxSelectID:                 {"tx.select", func() Method { return new(TxSelect) }},
	TxSelectOkID:               {"tx.select-ok", func() Method { return new(TxSelectOk) }},
	TxCommitID:                 {"tx.commit", func() Method { return new(TxCommit) }},
	TxCommitOkID:               {"tx.commit-ok", func() Method { return new(TxCommitOk) }},
	TxRollbackID:               {"tx.rollback", func() Method { return new(TxRollback) }},
	TxRollbackOkID:             {"tx.rollback-ok", func() Method { return new(TxRollbackOk) }},
}
