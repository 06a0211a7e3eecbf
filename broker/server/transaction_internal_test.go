package server

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker/amqp"
)

func TestNothingMayComeWhileCommitting(t *testing.T) {
	ch := &channel{id: 7}
	ch.tx.Store(&transaction{committing: true})
	payload := amqp.AppendMethod(nil, 7, &amqp.TxCommit{})
	err := ch.method(payload[7 : len(payload)-1])
	assert.EqualError(t, err, amqp.Answering(amqp.NewException(amqp.ChannelError, 0, 0,
		"unexpected command while processing 'tx.commit'"), amqp.TxCommitID).Error())
}
