package server_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	amqp "github.com/Azure/go-amqp"
	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp10"
	"curfew/broker/queue"
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

// TestFlowOfOneLink10: credit for one link does not ask the queues of the others, and all go on when the window opens.
func TestFlowOfOneLink10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.queue10("a", nil)
		x.queue10("b", nil)
		r := x.login10(guest10)
		r.send(0, &amqp10.Open{ContainerID: "raw", MaxFrameSize: amqp10.MinFrameSize, ChannelMax: 7})
		next10[*amqp10.Open](r)
		r.send(0, &amqp10.Begin{IncomingWindow: 0, OutgoingWindow: 2, HandleMax: 7})
		next10[*amqp10.Begin](r)
		for handle, name := range []string{"a", "b"} {
			link := attachTo(name, true)
			link.Handle, link.Name = uint32(handle), name
			r.send(0, link)
			next10[*amqp10.Attach](r)
			r.send(0, &amqp10.Flow{NextIncomingID: amqp10.Uint(0), Handle: amqp10.Uint(uint32(handle)), DeliveryCount: amqp10.Uint(0), LinkCredit: amqp10.Uint(1)})
			require.NoError(t, ch.Publish("", name, false, false, amqp091.Publishing{Body: []byte(name)}))
		}
		r.send(0, &amqp10.Flow{NextIncomingID: amqp10.Uint(0), IncomingWindow: 3})
		from := []uint32{next10[*amqp10.Transfer](r).Handle, next10[*amqp10.Transfer](r).Handle}
		assert.ElementsMatch(t, []uint32{0, 1}, from)

		require.NoError(t, ch.Publish("", "b", false, false, amqp091.Publishing{}))
		time.Sleep(time.Second)
		vh, _ := x.b.VHost("/")
		q, err := vh.Queues.Get("b")
		require.NoError(t, err)
		got, err := q.Messages.Get(true, func(*broker.Delivery) { // with the lock of the queue
			r.send(0, &amqp10.Flow{NextIncomingID: amqp10.Uint(2), IncomingWindow: 3, Handle: amqp10.Uint(0), DeliveryCount: amqp10.Uint(1), LinkCredit: amqp10.Uint(1), Echo: true})
			next10[*amqp10.Flow](r)
		})
		require.NoError(t, err)
		assert.True(t, got)
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

// stander is a consumer in which whoever gives it a message stands still, with the lock of the queue.
type stander struct {
	broker.Consumer
	leave chan struct{}
}

func (s *stander) Pull(_ *broker.Consumer, from *broker.Source, _ int) (taken int, more bool) {
	var d broker.Delivery
	for from.Next(&d) {
		taken++
		<-s.leave
	}
	return taken, true
}

func (s *stander) Cancelled(*broker.Consumer) {}

// standStill rejects a message of a queue, and lets the turn that moves it to the other queue stand still until the
// function that it returns is called.
func (x *site) standStill(from, to string) (goOn func()) {
	vh, _ := x.b.VHost("/")
	q, err := vh.Queues.Get(from)
	require.NoError(x.t, err)
	dead, err := vh.Queues.Get(to)
	require.NoError(x.t, err)
	dead.Messages.Purge()
	s := &stander{leave: make(chan struct{})}
	s.Sink, s.NoAck = s, true
	require.NoError(x.t, dead.Messages.Consume(&s.Consumer))
	s.Wake()
	var taken []queue.Seq
	got, err := q.Messages.Get(false, func(d *broker.Delivery) { taken = append(taken, d.Seq) })
	require.NoError(x.t, err)
	require.True(x.t, got)
	var turn sync.WaitGroup
	turn.Go(func() { q.Messages.Settle(broker.Reject, taken, nil) })
	synctest.Wait()
	return func() {
		close(s.leave)
		turn.Wait()
		s.Cancel()
	}
}

// TestRejectionsAreAnsweredOnceTheyAreSafe: a message leaves its queue for the disk when its dead letter arrives. If the letters of its queue are
// moved by another at that moment, and that stands still, a client that waits to be told that its rejection counts goes on waiting.
func TestRejectionsAreAnsweredOnceTheyAreSafe(t *testing.T) {
	run(t, busOptions(), func(x *site) {
		ch := x.queue10("q", amqp091.Table{"x-delivery-deadline": true, "x-dead-letter-queue": true, "x-lock-duration": int64(60_000)})
		require.NoError(t, ch.Tx())
		c, s := x.connect10(nil)
		plain := x.receiver10(s, "/queues/q", &amqp.ReceiverOptions{Credit: -1, SettlementMode: amqp.ReceiverSettleModeSecond.Ptr()})
		b := x.bus(&amqp.ConnOptions{})
		require.Equal(t, int32(202), b.token(busKeys[0], "q"))
		azure := x.receiver10(b.Session, "q", &amqp.ReceiverOptions{Credit: -1, SettlementMode: amqp.ReceiverSettleModeSecond.Ptr()})
		ask := b.node("q/$management")
		locked := func(rcv *amqp.Receiver) *amqp.Message {
			require.NoError(t, rcv.IssueCredit(1))
			return x.receive10(rcv)
		}
		for name, reject := range map[string]func() (answered func()){
			"rejected": func() func() {
				m := locked(plain)
				return func() { assert.NoError(t, plain.RejectMessage(x.t.Context(), m, nil)) }
			},
			"modified, with annotations": func() func() {
				m := locked(plain)
				return func() {
					assert.NoError(t, plain.ModifyMessage(x.t.Context(), m, &amqp.ModifyMessageOptions{UndeliverableHere: true, Annotations: amqp.Annotations{"x-opt-why": "w"}}))
				}
			},
			"by an SDK of Azure's": func() func() {
				m := locked(azure)
				return func() {
					assert.NoError(t, azure.RejectMessage(x.t.Context(), m, &amqp.Error{Condition: "com.microsoft:dead-letter", Info: fields{"DeadLetterReason": "r"}}))
				}
			},
			"by its lock": func() func() {
				token := amqp.UUID(locked(azure).DeliveryTag)
				for _, part := range [][]byte{token[:4], token[4:6], token[6:8]} { // as .NET writes them
					slices.Reverse(part)
				}
				return func() {
					status, _ := b.manage(ask, "update-disposition", fields{"disposition-status": "suspended", "lock-tokens": []amqp.UUID{token}})
					assert.Equal(t, int32(200), status)
				}
			},
			"in a transaction": func() func() {
				m, ok, err := ch.Get("q", false)
				require.NoError(t, err)
				require.True(t, ok)
				return func() {
					assert.NoError(t, m.Nack(false, false))
					assert.NoError(t, ch.TxCommit())
				}
			},
		} {
			x.publish(x.channel(x.connect()), "q", "first", "second")
			synctest.Wait()
			answer := reject()
			goOn := x.standStill("q", "q/$deadletterqueue")
			var answers sync.WaitGroup
			answered := false
			answers.Go(func() { answer(); answered = true })
			synctest.Wait()
			assert.False(t, answered, name)
			goOn()
			answers.Wait()
			assert.Zero(t, x.ready("q"), name)
		}
		x.close10(b.c)
		x.close10(c)
	})
}

// TestAnswersWaitForTheWindow: answers of a node wait for the client's window as they do for its credit, a few of them.
func TestAnswersWaitForTheWindow(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		r := x.raw10()
		for handle, role := range []bool{amqp10.RoleSender, amqp10.RoleReceiver} {
			r.send(0, &amqp10.Attach{
				Name: "pair", Handle: uint32(handle), Role: role, Source: &amqp10.Source{Address: "/management"}, Target: &amqp10.Target{Address: "/management"},
			})
			next10[*amqp10.Attach](r)
			if role == amqp10.RoleSender {
				next10[*amqp10.Flow](r)
			}
		}
		r.send(0, &amqp10.Flow{NextIncomingID: amqp10.Uint(0), IncomingWindow: 0, Handle: amqp10.Uint(1), DeliveryCount: amqp10.Uint(0), LinkCredit: amqp10.Uint(100)})
		method, path := "GET", "/queues/none"
		request, err := (&amqp.Message{Properties: &amqp.MessageProperties{To: &path, Subject: &method}, Value: nil}).MarshalBinary()
		require.NoError(t, err)
		ask := func(id uint32) {
			r.send(0, &amqp10.Transfer{DeliveryID: amqp10.Uint(id), DeliveryTag: []byte{1}}, request...)
		}
		for id := range uint32(16) {
			ask(id)
			next10[*amqp10.Disposition](r)
		}
		r.send(0, &amqp10.Flow{NextIncomingID: amqp10.Uint(0), IncomingWindow: 1})
		next10[*amqp10.Transfer](r)
		ask(16)
		next10[*amqp10.Disposition](r)
		ask(17)
		r.ended("amqp:precondition-failed")
	})
}
