package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp10"
	"curfew/broker/server"
)

// attachTo is what a client asks for that sends to a queue, or with toClient receives from it.
func attachTo(queue string, toClient bool) *amqp10.Attach {
	m := &amqp10.Attach{Name: "l", SenderMode: amqp10.SendMixed, Target: &amqp10.Target{Address: "/queues/" + queue}}
	if toClient {
		m.Role, m.Source, m.Target = amqp10.RoleReceiver, &amqp10.Source{Address: "/queues/" + queue}, nil
	}
	return m
}

// TestResume10: a link that would go on where another has ended is refused, and so is what could lose a message.
func TestResume10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.queue10("q", nil)
		r := x.raw10()
		unsettled := amqp10.Map{{Key: []byte("tag"), Value: amqp10.Described{Descriptor: amqp10.StateAccepted, Value: amqp10.List{}}}}
		for _, toClient := range []bool{false, true} {
			for want, change := range map[string]func(*amqp10.Attach){
				"a link cannot be resumed":                               func(m *amqp10.Attach) { m.Unsettled = unsettled },
				"attach it without unsettled deliveries":                 func(m *amqp10.Attach) { m.IncompleteUnsettled = true },
				"max-message-size 1000 is below the broker's, which is ": func(m *amqp10.Attach) { m.SenderMode, m.MaxMessageSize = amqp10.SendSettled, 1000 },
			} {
				m := attachTo("q", toClient)
				if change(m); m.MaxMessageSize > 0 && !toClient {
					continue
				}
				r.send(0, m)
				answer := next10[*amqp10.Attach](r)
				assert.Nil(t, answer.Source)
				assert.Nil(t, answer.Target)
				assert.Equal(t, toClient, answer.InitialDeliveryCount.Set, "it is due from the sender")
				why := next10[*amqp10.Detach](r)
				require.NotNil(t, why.Error)
				assert.True(t, why.Closed)
				assert.Equal(t, "amqp:not-implemented", why.Error.Condition)
				assert.Contains(t, why.Error.Description, want)
			}
		}
		r.nc.Close()
	})
}

// TestSettleModes10: the answer says which modes are in force: the client decides when it settles, the broker settles first.
func TestSettleModes10(t *testing.T) {
	runWith(t, broker.Options{MaxMessageBytes: 5000}, server.Options{}, func(x *site) {
		x.queue10("q", nil)
		r := x.raw10()
		for _, sender := range []uint8{amqp10.SendUnsettled, amqp10.SendSettled, amqp10.SendMixed} {
			for _, receiver := range []uint8{amqp10.ReceiveFirst, amqp10.ReceiveSecond} {
				for _, toClient := range []bool{false, true} {
					m := attachTo("q", toClient)
					m.SenderMode, m.ReceiverMode = sender, receiver
					r.send(0, m)
					answer := next10[*amqp10.Attach](r)
					if want := sender; toClient {
						if want == amqp10.SendMixed {
							want = amqp10.SendUnsettled
						}
						assert.Equal(t, []uint8{want, receiver}, []uint8{answer.SenderMode, answer.ReceiverMode})
						assert.Zero(t, answer.MaxMessageSize)
					} else {
						next10[*amqp10.Flow](r)
						assert.Equal(t, []uint8{want, amqp10.ReceiveFirst}, []uint8{answer.SenderMode, answer.ReceiverMode})
						assert.EqualValues(t, 5000, answer.MaxMessageSize)
					}
					r.send(0, &amqp10.Detach{Closed: true})
					assert.Nil(t, next10[*amqp10.Detach](r).Error)
				}
			}
		}
		r.nc.Close()
	})
}

// TestRefusedLink10: what a client sends on a link before it learns that the link was refused is no mistake of its session, which goes on.
func TestRefusedLink10(t *testing.T) {
	runWith(t, broker.Options{MaxMessageBytes: 1000}, server.Options{}, func(x *site) {
		ch := x.queue10("q", nil)
		r := x.raw10()
		flow := &amqp10.Flow{IncomingWindow: 100, Handle: amqp10.Uint(0), LinkCredit: amqp10.Uint(10), Echo: true}
		refused := func(condition string) {
			t.Helper()
			why := next10[*amqp10.Detach](r)
			require.NotNil(t, why.Error)
			assert.Equal(t, condition, why.Error.Condition)
		}
		for _, handle := range []string{"given back", "taken again"} {
			r.send(0, attachTo("none", true))
			r.send(0, flow)
			next10[*amqp10.Attach](r)
			refused("amqp:not-found")
			assert.False(t, next10[*amqp10.Flow](r).Handle.Set, "the session's")
			if handle == "given back" {
				r.send(0, &amqp10.Detach{Closed: true})
			}

			r.send(0, attachTo("none", false))
			for id := range uint32(2) {
				r.send(0, &amqp10.Transfer{DeliveryID: amqp10.Uint(id)}, data(1)...)
			}
			next10[*amqp10.Attach](r)
			refused("amqp:not-found")
			if handle == "given back" {
				r.send(0, &amqp10.Detach{Closed: true})
			}

			r.attach(0, "/queues/q")
			for id, size := range []int{1, 1001, 1} { // the second has no other answer
				r.send(0, &amqp10.Transfer{DeliveryID: amqp10.Uint(uint32(id)), Settled: true}, data(size)...)
			}
			refused("amqp:link:message-size-exceeded")
			if handle == "given back" {
				r.send(0, &amqp10.Detach{Closed: true})
			}
		}
		r.send(0, &amqp10.Flow{Echo: true})
		next10[*amqp10.Flow](r)
		r.nc.Close()
		time.Sleep(time.Second)
		n, err := ch.QueuePurge("q", false)
		require.NoError(t, err)
		assert.Equal(t, 2, n, "the first of each three")
	})
}
