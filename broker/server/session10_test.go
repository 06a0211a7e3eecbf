package server_test

import (
	"io"
	"net"
	"testing"
	"time"

	amqp "github.com/Azure/go-amqp"
	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/access"
	"curfew/broker/amqp10"
	"curfew/broker/server"
)

// raw10 is a client that sends what no library would.
type raw10 struct {
	x  *site
	nc net.Conn
	in []byte
}

var guest10 = &amqp10.SASLInit{Mechanism: "PLAIN", Response: []byte("\x00guest\x00guest")}

// raw10 logs in and begins session 0.
func (x *site) raw10() *raw10 {
	x.t.Helper()
	return x.raw10By(guest10)
}

func (x *site) raw10By(login *amqp10.SASLInit) *raw10 {
	x.t.Helper()
	r := x.login10(login)
	r.send(0, &amqp10.Open{ContainerID: "raw", MaxFrameSize: amqp10.Unlimited, ChannelMax: 7})
	next10[*amqp10.Open](r)
	r.begin(0)
	return r
}

// login10 logs in and opens nothing.
func (x *site) login10(login *amqp10.SASLInit) *raw10 {
	x.t.Helper()
	r := &raw10{x: x, nc: x.l.dial()}
	r.nc.SetDeadline(time.Now().Add(time.Hour))
	r.write([]byte(amqp10.SASLHeader))
	r.header(amqp10.SASLHeader)
	r.send(0, login)
	next10[*amqp10.SASLMechanisms](r)
	next10[*amqp10.SASLOutcome](r)
	r.write([]byte(amqp10.ProtocolHeader))
	r.header(amqp10.ProtocolHeader)
	return r
}

// attach attaches a link from the client to a queue, and expects the first credit.
func (r *raw10) attach(handle uint32, target string) {
	r.x.t.Helper()
	r.send(0, &amqp10.Attach{Name: "to " + target, Handle: handle, Target: &amqp10.Target{Address: target}})
	next10[*amqp10.Attach](r)
	next10[*amqp10.Flow](r)
}

// closed expects the end of the connection, with a condition.
func (r *raw10) closed(want string) {
	r.x.t.Helper()
	got := next10[*amqp10.Close](r)
	require.NotNil(r.x.t, got.Error, want)
	assert.Equal(r.x.t, want, got.Error.Condition, got.Error.Description)
	r.nc.Close()
	time.Sleep(time.Second)
}

// ended expects the end of session 0 with a condition, and begins another.
func (r *raw10) ended(want string) {
	r.x.t.Helper()
	end := next10[*amqp10.End](r)
	require.NotNil(r.x.t, end.Error, want)
	assert.Equal(r.x.t, want, end.Error.Condition)
	assert.NotContains(r.x.t, end.Error.Description, " - ")
	r.send(0, &amqp10.End{})
	r.begin(0)
}

func (r *raw10) begin(channel uint16) {
	r.x.t.Helper()
	r.send(channel, &amqp10.Begin{IncomingWindow: 100, OutgoingWindow: 100, HandleMax: 7})
	next10[*amqp10.Begin](r)
}

func (r *raw10) write(b []byte) {
	r.x.t.Helper()
	_, err := r.nc.Write(b)
	require.NoError(r.x.t, err)
}

func (r *raw10) send(channel uint16, p amqp10.Performative, payload ...byte) {
	r.x.t.Helper()
	r.write(amqp10.AppendFrame(nil, channel, p, payload))
}

// header reads the header of a protocol.
func (r *raw10) header(want string) {
	r.x.t.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(r.nc, got)
	require.NoError(r.x.t, err)
	require.Equal(r.x.t, want, string(got))
}

// next10 reads the next frame, which must be of that kind.
func next10[T amqp10.Performative](r *raw10) T {
	r.x.t.Helper()
	p, _ := payload10[T](r)
	return p
}

// payload10 is next10 with what is behind the performative.
func payload10[T amqp10.Performative](r *raw10) (T, []byte) {
	r.x.t.Helper()
	for {
		f, n, err := amqp10.ParseFrame(r.in, 1<<20)
		require.NoError(r.x.t, err)
		if n > 0 {
			r.in = r.in[n:]
			p, payload, err := amqp10.ParsePerformative(f.Body)
			require.NoError(r.x.t, err)
			require.IsType(r.x.t, *new(T), p)
			return p.(T), payload
		}
		b := make([]byte, 4096)
		n, err = r.nc.Read(b)
		require.NoError(r.x.t, err)
		r.in = append(r.in, b[:n]...)
	}
}

// TestSessionMistakes: what a client does wrong in a session ends the session, with AMQP 1.0's condition. Its connection goes on.
func TestSessionMistakes(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.queue10("q", nil)
		r := x.raw10()
		sender := &amqp10.Attach{Name: "s", Target: &amqp10.Target{Address: "/queues/q"}}
		for _, mistake := range []struct {
			want string
			sent amqp10.Performative
		}{
			{"amqp:session:handle-in-use", sender},
			{"amqp:session:unattached-handle", &amqp10.Transfer{Handle: 5, DeliveryID: amqp10.Uint(0)}},
			{"amqp:session:unattached-handle", &amqp10.Flow{IncomingWindow: 1, Handle: amqp10.Uint(5)}},
			{"amqp:not-implemented", &amqp10.Transfer{DeliveryID: amqp10.Uint(0), Resume: true}},
			{"amqp:not-implemented", &amqp10.Transfer{DeliveryID: amqp10.Uint(0), ReceiverMode: amqp10.ReceiveSecond}},
			{"amqp:not-allowed", &amqp10.Transfer{DeliveryTag: []byte("no id")}},
			{"amqp:not-found", &amqp10.Disposition{Role: amqp10.RoleReceiver, First: 7, Settled: true}},
			{"amqp:not-implemented", &amqp10.Disposition{Role: amqp10.RoleReceiver, Settled: true, State: &amqp10.State{Kind: 0x30}}},
		} {
			r.send(0, sender)
			next10[*amqp10.Attach](r)
			next10[*amqp10.Flow](r)
			r.send(0, mistake.sent)
			r.ended(mistake.want)
		}
		r.nc.Close()
		time.Sleep(time.Second)
	})
}

// TestWithoutSASL: the answer is the header of what is missing (AMQP 1.0 §2.2).
func TestWithoutSASL(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		nc := x.l.dial()
		_, err := nc.Write([]byte(amqp10.ProtocolHeader))
		require.NoError(t, err)
		answer, err := io.ReadAll(nc)
		require.NoError(t, err)
		assert.Equal(t, amqp10.SASLHeader, string(answer))
		nc.Close()
	})
}

// TestFailedDeliveries10: only what a consumer says has failed counts. What it releases, holds when it detaches, or modifies otherwise comes back
// as often as it wants.
func TestFailedDeliveries10(t *testing.T) {
	for name, arguments := range map[string]amqp091.Table{
		"quorum":  {"x-queue-type": "quorum", "x-delivery-limit": int64(1)},
		"classic": {"x-max-delivery-count": int64(2)},
	} {
		run(t, server.Options{}, func(x *site) {
			arguments["x-dead-letter-exchange"], arguments["x-dead-letter-routing-key"] = "", "dead"
			x.queue10("q", arguments)
			x.queue10("dead", nil)
			c, s := x.connect10(nil)
			require.NoError(t, x.sender10(s, "/queues/q").Send(x.t.Context(), &amqp.Message{Header: &amqp.MessageHeader{Durable: true, Priority: 4}, Data: [][]byte{nil}}, nil))
			rcv := x.receiver10(s, "/queues/q", &amqp.ReceiverOptions{Credit: 1})
			for i := range 10 {
				m := x.receive10(rcv)
				assert.Zero(t, m.Header.DeliveryCount, name)
				assert.Equal(t, i == 0, m.Header.FirstAcquirer, name)
				if i%2 == 0 {
					require.NoError(t, rcv.ReleaseMessage(x.t.Context(), m))
				} else {
					require.NoError(t, rcv.ModifyMessage(x.t.Context(), m, &amqp.ModifyMessageOptions{}))
				}
			}
			x.receive10(rcv)
			require.NoError(t, rcv.Close(x.t.Context()))
			rcv = x.receiver10(s, "/queues/q", &amqp.ReceiverOptions{Credit: 1})
			for failed := range uint32(2) {
				m := x.receive10(rcv)
				assert.Equal(t, failed, m.Header.DeliveryCount, name)
				require.NoError(t, rcv.ModifyMessage(x.t.Context(), m, &amqp.ModifyMessageOptions{DeliveryFailed: true}))
			}
			m := x.receive10(x.receiver10(s, "/queues/dead", nil))
			assert.Equal(t, "delivery_limit", m.Annotations["x-first-death-reason"], name)
			x.close10(c)
		})
	}
}

// TestBlockedPublishers10: a resource alarm holds publishers back, not consumers.
func TestBlockedPublishers10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.queue10("q", nil)
		c, s := x.connect10(&amqp.ConnOptions{WriteTimeout: time.Hour}) // a pipe takes nothing that is not read
		consuming, ofConsumer := x.connect10(nil)
		snd := x.sender10(s, "/queues/q")
		require.NoError(t, snd.Send(x.t.Context(), amqp.NewMessage([]byte("before")), nil))
		x.setAlarm(true)
		sent := make(chan error, 2)
		for range 2 {
			go func() { sent <- snd.Send(x.t.Context(), amqp.NewMessage([]byte("during")), nil) }()
		}
		time.Sleep(time.Minute)
		assert.Empty(t, sent)
		rcv := x.receiver10(ofConsumer, "/queues/q", nil)
		m := x.receive10(rcv)
		assert.Equal(t, "before", string(m.GetData()))
		require.NoError(t, rcv.AcceptMessage(x.t.Context(), m))
		x.noMore10(rcv)
		x.setAlarm(false)
		for range 2 {
			require.NoError(t, <-sent)
			m = x.receive10(rcv)
			assert.Equal(t, "during", string(m.GetData()))
			require.NoError(t, rcv.AcceptMessage(x.t.Context(), m))
		}
		x.close10(c)
		x.close10(consuming)
	})
}

// TestPurgeDuringAlarm10: what makes room is not held back.
func TestPurgeDuringAlarm10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.queue10("q", nil)
		c, s := x.connect10(nil)
		require.NoError(t, x.sender10(s, "/queues/q").Send(x.t.Context(), amqp.NewMessage([]byte("a")), nil))
		_, other := x.connect10(nil)
		x.setAlarm(true)
		status, answer := x.managed(other, "pair")("DELETE", "/queues/q/messages", nil)
		assert.Equal(t, "200", status)
		assert.Equal(t, fields{"message_count": uint64(1)}, answer)
		x.setAlarm(false)
		x.close10(c)
	})
}

// TestPermissions10: who may not write, read, or publish with a routing key is told so.
func TestPermissions10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.user("u", "", "^(topics|mine)$", "^mine$")
		require.NoError(t, x.b.Accounts.SetTopicPermission(access.TopicPermission{User: "u", VHost: "/", Exchange: "topics", Write: "^mine\\.", Read: ".*"}))
		ch := x.queue10("mine", nil)
		require.NoError(t, ch.ExchangeDeclare("topics", "topic", true, false, false, false, nil))
		require.NoError(t, ch.QueueBind("mine", "#", "topics", false, nil))
		c, s := x.connect10(&amqp.ConnOptions{SASLType: amqp.SASLTypePlain("u", "u")})
		var refused *amqp.Error
		_, err := s.NewSender(x.t.Context(), "/exchanges/amq.direct/k", nil)
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, amqp.ErrCond("amqp:unauthorized-access"), refused.Condition)
		assert.Equal(t, "access to exchange 'amq.direct' in vhost '/' refused for user 'u'", refused.Description)
		x.queue10("other", nil)
		_, err = s.NewReceiver(x.t.Context(), "/queues/other", nil)
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, "access to queue 'other' in vhost '/' refused for user 'u'", refused.Description)
		anonymous := x.sender10(s, "")
		for key, allowed := range map[string]bool{"mine.a": true, "other.a": false} {
			to := "/exchanges/topics/" + key
			err := anonymous.Send(x.t.Context(), &amqp.Message{Properties: &amqp.MessageProperties{To: &to}, Data: [][]byte{nil}}, nil)
			if allowed {
				require.NoError(t, err)
				continue
			}
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, amqp.ErrCond("amqp:unauthorized-access"), refused.Condition)
			assert.Equal(t, "access to topic 'other.a' in exchange 'topics' in vhost '/' refused for user 'u'", refused.Description)
		}
		x.receive10(x.receiver10(s, "/queues/mine", nil))
		to := "/exchanges/topics/mine.a"
		err = anonymous.Send(x.t.Context(), &amqp.Message{Properties: &amqp.MessageProperties{To: &to}, Annotations: amqp.Annotations{"x-cc": []any{"other.a"}}, Data: [][]byte{nil}}, nil)
		require.ErrorContains(t, err, "access to topic 'other.a'", "also by a copy")
		x.close10(c)
	})
}

// TestLapsedLock10: a message whose lock has lapsed goes to another consumer. Who settles it then is told so, and loses the session as with 0-9-1
// the channel; what else the session held comes back.
func TestLapsedLock10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.queue10("q", amqp091.Table{"x-lock-duration": int64(10_000)})
		c, s := x.connect10(nil)
		snd, err := s.NewSender(x.t.Context(), "/queues/q", nil)
		require.NoError(t, err)
		rcv := x.receiver10(s, "/queues/q", &amqp.ReceiverOptions{Credit: 1})
		require.NoError(t, snd.Send(x.t.Context(), amqp.NewMessage([]byte("a")), nil))
		m := x.receive10(rcv)
		time.Sleep(11 * time.Second)
		got, ok, err := ch.Get("q", false)
		require.NoError(t, err)
		require.True(t, ok)
		assert.True(t, got.Redelivered)
		rcv.AcceptMessage(x.t.Context(), m) //nolint:errcheck // a settled disposition has no answer
		_, err = rcv.Receive(x.t.Context(), nil)
		var ended *amqp.SessionError
		require.ErrorAs(t, err, &ended)
		assert.Equal(t, amqp.ErrCond("amqp:precondition-failed"), ended.RemoteErr.Condition)
		assert.Contains(t, ended.RemoteErr.Description, "has lapsed: the message went back to queue 'q' in vhost '/' after its x-lock-duration")
		require.NoError(t, got.Ack(false))
		x.close10(c)
	})
}

// TestModifiedDeadLetter10: the annotations of a consumer that cannot take a message are on its dead letter, and change nothing that the broker says.
func TestModifiedDeadLetter10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.queue10("q", amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
		x.queue10("dead", nil)
		c, s := x.connect10(nil)
		rcv := x.receiver10(s, "/queues/q", nil)
		snd := x.sender10(s, "/queues/q")
		require.NoError(t, snd.Send(x.t.Context(), amqp.NewMessage([]byte("a")), nil))
		m := x.receive10(rcv)
		require.NoError(t, rcv.ModifyMessage(x.t.Context(), m, &amqp.ModifyMessageOptions{UndeliverableHere: true, Annotations: amqp.Annotations{
			"x-opt-why": "no such customer", "x-opt-data": []byte("data"), "x-opt-tries": int32(3), "other": "o", "x-death": "none", "x-delay": int64(60_000), "x-opt-list": []any{"a"},
		}}))
		dead := x.receiver10(s, "/queues/dead", nil)
		m = x.receive10(dead)
		assert.Equal(t, "no such customer", m.Annotations["x-opt-why"])
		assert.Equal(t, []byte("data"), m.Annotations["x-opt-data"])
		assert.Equal(t, int32(3), m.Annotations["x-opt-tries"])
		assert.Equal(t, "rejected", m.Annotations["x-first-death-reason"])
		assert.Len(t, m.Annotations["x-death"], 1)
		for _, none := range []string{"other", "x-delay", "x-opt-list"} {
			assert.NotContains(t, m.Annotations, none)
		}
		require.NoError(t, dead.AcceptMessage(x.t.Context(), m))
		require.NoError(t, snd.Send(x.t.Context(), amqp.NewMessage([]byte("b")), nil))
		require.NoError(t, rcv.ModifyMessage(x.t.Context(), x.receive10(rcv), &amqp.ModifyMessageOptions{UndeliverableHere: true, Annotations: amqp.Annotations{
			"x-opt-why": string(make([]byte, 5000)),
		}}))
		_, err := rcv.Receive(x.t.Context(), nil)
		var ended *amqp.SessionError
		require.ErrorAs(t, err, &ended)
		assert.Equal(t, "the annotations of the outcome take more than 4096 octets", ended.RemoteErr.Description)
		x.close10(c)
	})
}
