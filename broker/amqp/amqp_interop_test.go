package amqp_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
)

var headers = amqp.Table{
	"bool": true, "int8": int8(-8), "uint8": uint8(8), "int16": int16(-16), "uint16": uint16(16),
	"int32": int32(-32), "uint32": uint32(32), "int64": int64(-64), "float32": float32(1.5),
	"float64": -2.5, "decimal": amqp.Decimal{Scale: 2, Value: -123}, "string": "caf\u00e9",
	"bytes": []byte{0, 0xCE}, "timestamp": amqp.Timestamp(1_700_000_000), "void": nil,
	"table": amqp.Table{"inner": amqp.Table{"k": int64(1)}}, "array": []any{"a", int32(2), amqp.Table{}},
}

var properties = amqp.Properties{
	ContentType: "text/plain", ContentEncoding: "gzip", Headers: headers, DeliveryMode: 2, Priority: 9,
	CorrelationID: "corr", ReplyTo: "reply", Expiration: "5000", MessageID: "id",
	Timestamp: 1_700_000_000, Type: "type", UserID: "guest", AppID: "app",
}

func TestAmqp091ClientSpeaksWithThisCodec(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789"), 1000) // three body frames
	s := &script{t: t, message: message{properties, large}}
	conn, wait := s.start(&amqp091.PlainAuth{Username: "guest", Password: "guest"})
	require.Equal(t, theirTable(headers), conn.Properties)
	require.NoError(t, conn.UpdateSecret("s3cret", "refresh"))
	ch, err := conn.Channel()
	require.NoError(t, err)

	declareTopology(t, ch)
	publish(t, ch, large)
	consume(t, ch, large)
	require.NoError(t, ch.Close())
	require.NoError(t, conn.Close())
	wait()

	require.Equal(t, message{withSet(properties), large}, s.message)
	startOk := s.methods[0].(*amqp.ConnectionStartOk)
	require.Equal(t, "PLAIN", startOk.Mechanism)
	require.Equal(t, "\x00guest\x00guest", string(startOk.Response))
}

func TestAmqplainResponseIsATableWithoutItsLength(t *testing.T) {
	s := &script{t: t}
	conn, wait := s.start(&amqp091.AMQPlainAuth{Username: "guest", Password: "pass"})
	require.NoError(t, conn.Close())
	wait()
	login, err := amqp.ParseTableEntries(s.methods[0].(*amqp.ConnectionStartOk).Response, amqp.Limits{})
	require.NoError(t, err)
	require.Equal(t, amqp.Table{"LOGIN": "guest", "PASSWORD": "pass"}, login)
}

func TestClientReadsAnException(t *testing.T) {
	s := &script{t: t}
	conn, wait := s.start(&amqp091.PlainAuth{})
	ch, err := conn.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclarePassive("missing", false, false, false, false, nil)
	require.Equal(t, &amqp091.Error{Code: 404, Reason: "NOT_FOUND - no queue 'missing' in vhost '/'", Server: true, Recover: true}, err)
	require.NoError(t, conn.Close())
	wait()
}

func declareTopology(t *testing.T, ch *amqp091.Channel) {
	args := amqp091.Table{"x-message-ttl": int32(5000)}
	require.NoError(t, ch.Qos(10, 0, true))
	require.NoError(t, ch.ExchangeDeclare("e", "topic", true, false, true, false, args))
	require.NoError(t, ch.ExchangeBind("e", "k", "s", false, args))
	require.NoError(t, ch.ExchangeUnbind("e", "k", "s", false, args))
	q, err := ch.QueueDeclare("q", true, true, false, false, args)
	require.NoError(t, err)
	require.Equal(t, amqp091.Queue{Name: "q", Messages: 3, Consumers: 2}, q)
	require.NoError(t, ch.QueueBind("q", "a.#", "e", false, args))
	require.NoError(t, ch.QueueUnbind("q", "a.#", "e", args))
	n, err := ch.QueuePurge("q", false)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	n, err = ch.QueueDelete("q", true, true, false)
	require.NoError(t, err)
	require.Equal(t, 5, n)
	require.NoError(t, ch.ExchangeDelete("e", true, false))
	require.NoError(t, ch.Flow(true))
	//lint:ignore SA1019 deprecated, but still in use
	require.NoError(t, ch.Recover(true))
	require.NoError(t, ch.Tx())
	require.NoError(t, ch.TxCommit())
	require.NoError(t, ch.TxRollback())
}

// consume receives what the script delivers and settles it in every way.
func consume(t *testing.T, ch *amqp091.Channel, body []byte) {
	deliveries, err := ch.Consume("q", "ctag", false, true, false, false, amqp091.Table{"x-priority": int32(5)})
	require.NoError(t, err)
	d := <-deliveries
	requireTheirs(t, d, body)
	require.Equal(t, "ctag", d.ConsumerTag)
	require.NoError(t, d.Ack(true))
	require.NoError(t, d.Nack(true, false))
	require.NoError(t, d.Reject(true))

	d, ok, err := ch.Get("q", true)
	require.NoError(t, err)
	require.True(t, ok)
	requireTheirs(t, d, body)
	require.Equal(t, uint32(9), d.MessageCount)
	_, ok, err = ch.Get("empty", false)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, ch.Cancel("ctag", false))
}

func requireTheirs(t *testing.T, d amqp091.Delivery, body []byte) {
	t.Helper()
	require.Equal(t, theirTable(headers), d.Headers)
	require.Equal(t, []any{"text/plain", "gzip", uint8(2), uint8(9), "corr", "reply", "5000", "id", "type", "guest", "app"},
		[]any{d.ContentType, d.ContentEncoding, d.DeliveryMode, d.Priority, d.CorrelationId, d.ReplyTo, d.Expiration, d.MessageId, d.Type, d.UserId, d.AppId})
	require.Equal(t, int64(1_700_000_000), d.Timestamp.Unix())
	require.Equal(t, []any{uint64(7), true, "e", "k"}, []any{d.DeliveryTag, d.Redelivered, d.Exchange, d.RoutingKey})
	require.True(t, bytes.Equal(body, d.Body))
}

// publish sends a mandatory message, which the script returns and confirms.
func publish(t *testing.T, ch *amqp091.Channel, body []byte) {
	require.NoError(t, ch.Confirm(false))
	returns := ch.NotifyReturn(make(chan amqp091.Return, 1))
	p := properties
	confirm, err := ch.PublishWithDeferredConfirmWithContext(context.Background(), "e", "k", true, false, amqp091.Publishing{
		Headers: theirTable(p.Headers), ContentType: p.ContentType, ContentEncoding: p.ContentEncoding,
		DeliveryMode: p.DeliveryMode, Priority: p.Priority, CorrelationId: p.CorrelationID, ReplyTo: p.ReplyTo,
		Expiration: p.Expiration, MessageId: p.MessageID, Timestamp: time.Unix(int64(p.Timestamp), 0),
		Type: p.Type, UserId: p.UserID, AppId: p.AppID, Body: body,
	})
	require.NoError(t, err)
	require.True(t, confirm.Wait())
	r := <-returns
	require.Equal(t, []any{uint16(312), "NO_ROUTE", "e", "k"}, []any{r.ReplyCode, r.ReplyText, r.Exchange, r.RoutingKey})
	require.Equal(t, theirTable(headers), r.Headers)
	require.True(t, bytes.Equal(body, r.Body))
}

// theirTable returns t in amqp091-go's types.
func theirTable(t amqp.Table) amqp091.Table {
	theirs := amqp091.Table{}
	for key, value := range t {
		theirs[key] = theirValue(value)
	}
	return theirs
}

func theirValue(value any) any {
	switch v := value.(type) {
	case amqp.Table:
		return theirTable(v)
	case amqp.Timestamp:
		return time.Unix(int64(v), 0)
	case amqp.Decimal:
		return amqp091.Decimal{Scale: v.Scale, Value: v.Value}
	case []any:
		theirs := make([]any, len(v))
		for i := range v {
			theirs[i] = theirValue(v[i])
		}
		return theirs
	}
	return value
}

// withSet returns p as it is parsed, with the set of present properties.
func withSet(p amqp.Properties) amqp.Properties {
	v, err := amqp.ViewProperties(p.Append(nil))
	if err != nil {
		panic(err)
	}
	p.Has = v.Has
	return p
}
