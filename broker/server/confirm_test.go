package server

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker"
	"curfew/broker/amqp"
)

func TestConfirmsInAsFewFramesAsItTakes(t *testing.T) {
	ack := func(b []byte, tag uint64, multiple bool) []byte { return amqp.AppendAck(b, 7, tag, multiple) }
	nack := func(b []byte, tag uint64) []byte { return amqp.AppendNack(b, 7, tag, false, false) }
	for _, c := range []struct {
		first, last uint64
		refused     []uint64
		want        []byte
	}{
		{1, 1, nil, ack(nil, 1, false)},
		{1, 5, nil, ack(nil, 5, true)},
		{4, 6, []uint64{4, 5, 6}, nack(nack(nack(nil, 4), 5), 6)},
		{1, 6, []uint64{3}, ack(nack(ack(nil, 2, true), 3), 6, true)},
		{1, 3, []uint64{2}, ack(nack(ack(nil, 1, false), 2), 3, false)},
	} {
		ch := &channel{id: 7, conn: &connection{srv: new(Server)}}
		ch.conn.out.init(func() {})
		ch.confirmRange(c.first, c.last, c.refused)
		assert.Equal(t, c.want, ch.conn.out.buf)
	}
}

func TestClosedChannelIsNotConfirmedAnything(t *testing.T) {
	ch := &channel{id: 7, conn: &connection{}, closed: true}
	ch.conn.out.init(func() {})
	ch.confirmRange(1, 9, nil)
	assert.Empty(t, ch.conn.out.buf, "its number may be in use again")
}

func TestNothingMayComeWhileCommitting(t *testing.T) {
	ch := &channel{id: 7, tx: &transaction{}, committing: true}
	payload := amqp.AppendMethod(nil, 7, &amqp.TxCommit{})
	err := ch.method(payload[7 : len(payload)-1])
	assert.EqualError(t, err, amqp.Answering(amqp.NewException(amqp.ChannelError, 0, 0,
		"unexpected command while processing 'tx.commit'"), amqp.TxCommitID).Error())
}

func TestRepliesAreLostWhereTooManyWait(t *testing.T) {
	srv := &Server{}
	ch := &channel{id: 7, conn: &connection{frameMax: 4096, srv: srv}}
	ch.conn.out.init(func() {})
	ch.deliverReply("tag", &broker.Publication{Properties: []byte{0, 0}, Body: []byte("x")})
	assert.NotEmpty(t, ch.conn.out.buf)
	ch.conn.out.buf = make([]byte, replyBacklog+1)
	ch.deliverReply("tag", &broker.Publication{Properties: []byte{0, 0}, Body: []byte("x")})
	assert.Len(t, ch.conn.out.buf, replyBacklog+1)
	assert.EqualValues(t, 1, srv.totals.repliesLost.Load())
}
