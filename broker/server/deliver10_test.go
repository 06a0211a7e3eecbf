package server_test

import (
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp10"
	"curfew/broker/server"
)

// TestWindow10: a client gets no more transfers than its window allows, in the middle of a message, too.
func TestWindow10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.queue10("q", nil)
		for range 3 {
			require.NoError(t, ch.Publish("", "q", false, false, amqp091.Publishing{Body: make([]byte, 1000)}))
		}
		r := x.login10(guest10)
		r.send(0, &amqp10.Open{ContainerID: "raw", MaxFrameSize: amqp10.MinFrameSize, ChannelMax: 7})
		next10[*amqp10.Open](r)
		r.send(0, &amqp10.Begin{IncomingWindow: 2, OutgoingWindow: 2, HandleMax: 7})
		next10[*amqp10.Begin](r)
		r.send(0, attachTo("q", true))
		next10[*amqp10.Attach](r)
		flow := &amqp10.Flow{NextIncomingID: amqp10.Uint(0), IncomingWindow: 2, Handle: amqp10.Uint(0), DeliveryCount: amqp10.Uint(0), LinkCredit: amqp10.Uint(3)}
		messages := 0
		for transfers := uint32(0); messages < 3; {
			r.send(0, flow)
			for range flow.IncomingWindow {
				if !next10[*amqp10.Transfer](r).More {
					messages++
				}
				transfers++
			}
			r.send(0, &amqp10.Flow{NextIncomingID: amqp10.Uint(transfers), OutgoingWindow: 2, Echo: true}) // nothing is between
			next10[*amqp10.Flow](r)
			flow = &amqp10.Flow{NextIncomingID: amqp10.Uint(transfers), IncomingWindow: 1}
		}
		r.nc.Close()
		time.Sleep(time.Second)
	})
}

// TestMaxMessageSize10: a message that is larger than the client takes ends its link, and stays in the queue for others.
func TestMaxMessageSize10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.queue10("q", nil)
		for _, size := range []int{100, 2000} {
			require.NoError(t, ch.Publish("", "q", false, false, amqp091.Publishing{Body: make([]byte, size)}))
		}
		r := x.raw10()
		m := attachTo("q", true)
		m.MaxMessageSize = 1000
		r.send(0, m)
		assert.Zero(t, next10[*amqp10.Attach](r).MaxMessageSize)
		flow := &amqp10.Flow{NextIncomingID: amqp10.Uint(0), IncomingWindow: 100, Handle: amqp10.Uint(0), DeliveryCount: amqp10.Uint(0), LinkCredit: amqp10.Uint(5)}
		r.send(0, flow)
		r.send(0, &amqp10.Disposition{Role: amqp10.RoleReceiver, First: next10[*amqp10.Transfer](r).DeliveryID.Value, Settled: true, State: &amqp10.State{Kind: amqp10.StateAccepted}})
		aborted := next10[*amqp10.Transfer](r)
		assert.True(t, aborted.Aborted)
		assert.EqualValues(t, 1, aborted.DeliveryID.Value, "ids have no gap")
		why := next10[*amqp10.Detach](r)
		require.NotNil(t, why.Error)
		assert.Equal(t, "amqp:link:message-size-exceeded", why.Error.Condition)
		assert.Contains(t, why.Error.Description, "is larger than the link's max-message-size, which is 1000")
		r.send(0, flow) // on its way when the link ended
		r.send(0, &amqp10.Detach{Closed: true})
		r.send(0, m)
		next10[*amqp10.Attach](r)
		time.Sleep(time.Second)
		got, ok, err := ch.Get("q", true)
		require.NoError(t, err)
		require.True(t, ok)
		assert.Len(t, got.Body, 2000)
		r.nc.Close()
		time.Sleep(time.Second)
	})
}
