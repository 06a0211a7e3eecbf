package amqp

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
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
// as *QueueDeclare.
type Method any

// IDOf returns the ID of a method. It panics on anything else.
func IDOf(m Method) MethodID { return ids[reflect.TypeOf(m).Elem()] }

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
	m := reflect.New(known.of)
	r := reader{cursor: cursor{rest: payload[4:]}, limits: lim}
	known.parse(&r, m.Elem())
	if err := r.done(id); err != nil {
		return nil, err
	}
	return m.Interface(), nil
}

// AppendMethod appends the whole frame of m. It panics on a short string of more than 255
// octets and on a table value without an AMQP type. The texts of close and return are cut
// instead.
func AppendMethod(b []byte, channel uint16, m Method) []byte {
	start, id := len(b), IDOf(m)
	b = appendFrameHeader(b, FrameMethod, channel, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(id))
	return endFrame(methods[id].append(b, reflect.ValueOf(m).Elem()), start)
}

// methodKind is the layout of a method.
type methodKind struct {
	name      string
	of        reflect.Type // its struct
	arguments []argument
}

// argument is one argument of a method, as its field describes it.
type argument struct {
	field             []int
	kind              reflect.Kind
	reserved          bool
	long, octets, cut bool  // of a text
	bit               uint8 // of a bool: neighbours share an octet, the lowest bit first (AMQP 0-9-1 §4.2.5.2)
	lastBit           bool
}

// layout reads the arguments from the fields of a struct, those of what it embeds included. at is where that is embedded.
func layout(of reflect.Type, at ...int) (list []argument) {
	for i := range of.NumField() {
		f, field := of.Field(i), append(slices.Clone(at), i)
		if f.Anonymous {
			list = append(list, layout(f.Type, field...)...)
			continue
		}
		a, tag := argument{field: field, kind: f.Type.Kind(), reserved: f.Name == "_"}, f.Tag.Get("amqp")
		a.long, a.octets, a.cut = tag == "long", strings.HasPrefix(tag, "octets"), strings.HasSuffix(tag, "cut")
		if last := len(list) - 1; a.kind == reflect.Bool && last >= 0 && list[last].lastBit {
			a.bit, list[last].lastBit = list[last].bit+1, false
		}
		a.lastBit = a.kind == reflect.Bool
		list = append(list, a)
	}
	return list
}

func (k *methodKind) parse(r *reader, m reflect.Value) {
	var octet uint8
	for i := range k.arguments {
		a := &k.arguments[i]
		if a.kind == reflect.Bool && a.bit == 0 {
			octet = r.octet()
		}
		if a.reserved {
			r.skip(a)
			continue
		}
		switch to := m.FieldByIndex(a.field); a.kind {
		case reflect.Bool:
			to.SetBool(octet&(1<<a.bit) != 0)
		case reflect.String:
			to.SetString(r.text(a))
		case reflect.Slice:
			to.SetBytes(append([]byte{}, r.longstr()...))
		case reflect.Map:
			to.Set(reflect.ValueOf(r.table()))
		default:
			to.SetUint(r.number(a.kind))
		}
	}
}

func (k *methodKind) append(b []byte, m reflect.Value) []byte {
	var octet uint8
	for i := range k.arguments {
		a := &k.arguments[i]
		switch from := m.FieldByIndex(a.field); a.kind {
		case reflect.Bool:
			if octet |= bit(from.Bool()) << a.bit; a.lastBit {
				b, octet = append(b, octet), 0
			}
		case reflect.String:
			b = appendText(b, from.String(), a)
		case reflect.Slice:
			b = appendLongstr(b, from.Bytes())
		case reflect.Map:
			b = AppendTable(b, from.Interface().(Table))
		case reflect.Uint8:
			b = append(b, uint8(from.Uint()))
		case reflect.Uint16:
			b = binary.BigEndian.AppendUint16(b, uint16(from.Uint()))
		case reflect.Uint32:
			b = binary.BigEndian.AppendUint32(b, uint32(from.Uint()))
		default:
			b = binary.BigEndian.AppendUint64(b, from.Uint())
		}
	}
	return b
}

// methods has every method of AMQP 0-9-1, and of RabbitMQ's extensions that clients use
// today. The class access, which 0-9-1 dropped, is not included.
var methods = map[MethodID]*methodKind{
	ConnectionStartID:          kindOf[ConnectionStart]("connection.start"),
	ConnectionStartOkID:        kindOf[ConnectionStartOk]("connection.start-ok"),
	ConnectionSecureID:         kindOf[ConnectionSecure]("connection.secure"),
	ConnectionSecureOkID:       kindOf[ConnectionSecureOk]("connection.secure-ok"),
	ConnectionTuneID:           kindOf[ConnectionTune]("connection.tune"),
	ConnectionTuneOkID:         kindOf[ConnectionTuneOk]("connection.tune-ok"),
	ConnectionOpenID:           kindOf[ConnectionOpen]("connection.open"),
	ConnectionOpenOkID:         kindOf[ConnectionOpenOk]("connection.open-ok"),
	ConnectionCloseID:          kindOf[ConnectionClose]("connection.close"),
	ConnectionCloseOkID:        kindOf[ConnectionCloseOk]("connection.close-ok"),
	ConnectionBlockedID:        kindOf[ConnectionBlocked]("connection.blocked"),
	ConnectionUnblockedID:      kindOf[ConnectionUnblocked]("connection.unblocked"),
	ConnectionUpdateSecretID:   kindOf[ConnectionUpdateSecret]("connection.update-secret"),
	ConnectionUpdateSecretOkID: kindOf[ConnectionUpdateSecretOk]("connection.update-secret-ok"),
	ChannelOpenID:              kindOf[ChannelOpen]("channel.open"),
	ChannelOpenOkID:            kindOf[ChannelOpenOk]("channel.open-ok"),
	ChannelFlowID:              kindOf[ChannelFlow]("channel.flow"),
	ChannelFlowOkID:            kindOf[ChannelFlowOk]("channel.flow-ok"),
	ChannelCloseID:             kindOf[ChannelClose]("channel.close"),
	ChannelCloseOkID:           kindOf[ChannelCloseOk]("channel.close-ok"),
	ExchangeDeclareID:          kindOf[ExchangeDeclare]("exchange.declare"),
	ExchangeDeclareOkID:        kindOf[ExchangeDeclareOk]("exchange.declare-ok"),
	ExchangeDeleteID:           kindOf[ExchangeDelete]("exchange.delete"),
	ExchangeDeleteOkID:         kindOf[ExchangeDeleteOk]("exchange.delete-ok"),
	ExchangeBindID:             kindOf[ExchangeBind]("exchange.bind"),
	ExchangeBindOkID:           kindOf[ExchangeBindOk]("exchange.bind-ok"),
	ExchangeUnbindID:           kindOf[ExchangeUnbind]("exchange.unbind"),
	ExchangeUnbindOkID:         kindOf[ExchangeUnbindOk]("exchange.unbind-ok"),
	QueueDeclareID:             kindOf[QueueDeclare]("queue.declare"),
	QueueDeclareOkID:           kindOf[QueueDeclareOk]("queue.declare-ok"),
	QueueBindID:                kindOf[QueueBind]("queue.bind"),
	QueueBindOkID:              kindOf[QueueBindOk]("queue.bind-ok"),
	QueuePurgeID:               kindOf[QueuePurge]("queue.purge"),
	QueuePurgeOkID:             kindOf[QueuePurgeOk]("queue.purge-ok"),
	QueueDeleteID:              kindOf[QueueDelete]("queue.delete"),
	QueueDeleteOkID:            kindOf[QueueDeleteOk]("queue.delete-ok"),
	QueueUnbindID:              kindOf[QueueUnbind]("queue.unbind"),
	QueueUnbindOkID:            kindOf[QueueUnbindOk]("queue.unbind-ok"),
	BasicQosID:                 kindOf[BasicQos]("basic.qos"),
	BasicQosOkID:               kindOf[BasicQosOk]("basic.qos-ok"),
	BasicConsumeID:             kindOf[BasicConsume]("basic.consume"),
	BasicConsumeOkID:           kindOf[BasicConsumeOk]("basic.consume-ok"),
	BasicCancelID:              kindOf[BasicCancel]("basic.cancel"),
	BasicCancelOkID:            kindOf[BasicCancelOk]("basic.cancel-ok"),
	BasicPublishID:             kindOf[BasicPublish]("basic.publish"),
	BasicReturnID:              kindOf[BasicReturn]("basic.return"),
	BasicDeliverID:             kindOf[BasicDeliver]("basic.deliver"),
	BasicGetID:                 kindOf[BasicGet]("basic.get"),
	BasicGetOkID:               kindOf[BasicGetOk]("basic.get-ok"),
	BasicGetEmptyID:            kindOf[BasicGetEmpty]("basic.get-empty"),
	BasicAckID:                 kindOf[BasicAck]("basic.ack"),
	BasicRejectID:              kindOf[BasicReject]("basic.reject"),
	BasicRecoverAsyncID:        kindOf[BasicRecoverAsync]("basic.recover-async"),
	BasicRecoverID:             kindOf[BasicRecover]("basic.recover"),
	BasicRecoverOkID:           kindOf[BasicRecoverOk]("basic.recover-ok"),
	BasicNackID:                kindOf[BasicNack]("basic.nack"),
	ConfirmSelectID:            kindOf[ConfirmSelect]("confirm.select"),
	ConfirmSelectOkID:          kindOf[ConfirmSelectOk]("confirm.select-ok"),
	TxSelectID:                 kindOf[TxSelect]("tx.select"),
	TxSelectOkID:               kindOf[TxSelectOk]("tx.select-ok"),
	TxCommitID:                 kindOf[TxCommit]("tx.commit"),
	TxCommitOkID:               kindOf[TxCommitOk]("tx.commit-ok"),
	TxRollbackID:               kindOf[TxRollback]("tx.rollback"),
	TxRollbackOkID:             kindOf[TxRollbackOk]("tx.rollback-ok"),
}

var ids = func() map[reflect.Type]MethodID {
	ids := map[reflect.Type]MethodID{}
	for id, known := range methods {
		ids[known.of] = id
	}
	return ids
}()

func kindOf[T any](name string) *methodKind {
	of := reflect.TypeFor[T]()
	return &methodKind{name, of, layout(of)}
}
