package server_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"
	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp10"
	"curfew/broker/server"
	"curfew/broker/store"
)

// bareValues are a value of each type of AMQP 1.0.
var bareValues = amqp10.List{
	nil, true, false, uint8(1), int8(-1), uint16(2), int16(-2), uint32(0), uint32(3), uint32(300), int32(-3), uint64(0), uint64(4), uint64(1 << 63), int64(-4),
	float32(1.5), 2.5, amqp10.Char('é'), amqp10.Timestamp(-1), amqp10.Timestamp(1_767_323_045_678), amqp10.UUID{0: 1, 15: 0xff}, []byte{0, 0xff}, "text", strings.Repeat("x", 300), amqp10.Symbol("s"),
	amqp10.Decimal{Code: 0x74, Data: [16]byte{1}}, amqp10.Decimal{Code: 0x84, Data: [16]byte{2}}, amqp10.Decimal{Code: 0x94, Data: [16]byte{3}},
	amqp10.Described{Descriptor: amqp10.Symbol("d"), Value: "v"},
}

// bareMessages are bare messages and footers of every kind.
func bareMessages() [][]byte {
	section := func(code byte, v any) []byte { return amqp10.AppendSection(nil, code, v) }
	data, footer := section(amqp10.SectionData, []byte("body")), section(amqp10.SectionFooter, amqp10.Map{{Key: amqp10.Symbol("x-sum"), Value: []byte{1, 2}}})
	bodies := [][]byte{
		data, section(amqp10.SectionData, []byte{}), section(amqp10.SectionData, []byte(strings.Repeat("x", 5000))), append(data[:len(data):len(data)], data...), nil,
		append([]byte{0, 0x80, 0, 0, 0, 0, 0, 0, 0, amqp10.SectionData, 0xb0, 0, 0, 0, 1}, 'x'), // the longest way to say it
		section(amqp10.SectionSequence, amqp10.List{}), append(section(amqp10.SectionSequence, bareValues), section(amqp10.SectionSequence, amqp10.List{"a"})...),
		section(amqp10.SectionValue, bareValues), section(amqp10.SectionValue, amqp10.Map{{Key: uint8(1), Value: bareValues}}), section(amqp10.SectionValue, amqp10.Array{int64(1), int64(300)}),
	}
	for _, v := range bareValues {
		bodies = append(bodies, section(amqp10.SectionValue, v))
	}
	var values amqp10.Map
	for i, v := range bareValues {
		values = append(values, amqp10.Entry{Key: fmt.Sprint("k", i), Value: v})
	}
	heads := [][]byte{
		nil, section(amqp10.SectionProperties, amqp10.List{}), section(amqp10.SectionApplicationProperties, values),
		amqp10.AppendPerformative(nil, &amqp10.Properties{MessageID: "a", CorrelationID: "b", ContentType: "text/plain"}),
		append(section(amqp10.SectionProperties, amqp10.List{
			amqp10.UUID{1}, []byte("guest"), "to", "subject", "reply", []byte{0xff}, amqp10.Symbol("text/plain"), amqp10.Symbol("gzip"), nil, amqp10.Timestamp(1_767_323_045_678), "group", uint32(7), "reply-group",
		}), section(amqp10.SectionApplicationProperties, values)...),
	}
	var all [][]byte
	for i, body := range bodies {
		for j := range heads {
			if j > 0 && i > 10 {
				break // one head for each of the many values
			}
			head := heads[(i+j)%len(heads)]
			all = append(all, fmt.Appendf(nil, "%s%s", head, body), fmt.Appendf(nil, "%s%s%s", head, body, footer))
		}
		all = append(all, fmt.Appendf(nil, "%s%s%s", heads[3], footer, body)) // as rhea writes it
	}
	return all
}

// TestBareMessagesComeBack: the checksum of the bare message and the footer is that of what was sent, through memory, through the journal and a
// restart, and after the message was dead-lettered.
func TestBareMessagesComeBack(t *testing.T) {
	sent := bareMessages()
	sender, receiver := &amqp10.Attach{Name: "s", Target: &amqp10.Target{Address: "/queues/q"}}, &amqp10.Attach{Name: "r", Handle: 1, Role: amqp10.RoleReceiver}
	publish := func(x *site) {
		x.queue10("dead", nil)
		x.queue10("q", amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
		r := x.raw10()
		r.send(0, sender)
		next10[*amqp10.Attach](r)
		next10[*amqp10.Flow](r)
		for i, bare := range sent {
			b := amqp10.AppendPerformative(nil, &amqp10.Header{Durable: true, Priority: uint8(i % 10)})
			b = amqp10.AppendSection(b, amqp10.SectionMessageAnnotations, amqp10.Map{{Key: amqp10.Symbol("x-opt-place"), Value: int64(i)}})
			r.send(0, &amqp10.Transfer{DeliveryID: amqp10.Uint(uint32(i)), DeliveryTag: []byte{1}}, append(b, bare...)...)
			d := next10[*amqp10.Disposition](r)
			require.EqualValues(t, amqp10.StateAccepted, d.State.Kind, "%x: %+v", bare, d.State.Error)
		}
		r.nc.Close()
		time.Sleep(time.Second)
	}
	receive := func(x *site, queue string, outcome uint64) {
		r := x.raw10()
		receiver.Source = &amqp10.Source{Address: "/queues/" + queue}
		r.send(0, receiver)
		next10[*amqp10.Attach](r)
		for i, bare := range sent {
			r.send(0, &amqp10.Flow{NextIncomingID: amqp10.Uint(uint32(i)), IncomingWindow: 100, Handle: amqp10.Uint(1), DeliveryCount: amqp10.Uint(uint32(i)), LinkCredit: amqp10.Uint(1)})
			transfer, payload := payload10[*amqp10.Transfer](r)
			m, err := amqp10.Split(payload)
			require.NoError(t, err, "%x", payload)
			require.Equal(t, sha256.Sum256(bare), sha256.Sum256(m.Bare), "%s: %x became %x", queue, bare, m.Bare)
			v, _, err := amqp10.Parse(m.MessageAnnotations)
			require.NoError(t, err)
			assert.EqualValues(t, i, v.(amqp10.Map).Get("x-opt-place"))
			r.send(0, &amqp10.Disposition{Role: amqp10.RoleReceiver, First: transfer.DeliveryID.Value, Settled: true, State: &amqp10.State{Kind: outcome}})
		}
		r.nc.Close()
		time.Sleep(time.Second)
	}
	run(t, server.Options{}, func(x *site) {
		publish(x)
		receive(x, "q", amqp10.StateRejected)
		receive(x, "dead", amqp10.StateAccepted)
	})
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	runWith(t, o, server.Options{}, publish)
	runWith(t, o, server.Options{}, func(x *site) { receive(x, "q", amqp10.StateRejected) })
	runWith(t, o, server.Options{}, func(x *site) { receive(x, "dead", amqp10.StateAccepted) })
}

// data is a message with a body of n octets, which the tests may cut anywhere.
func data(n int) []byte {
	b := append([]byte("\x00Su\xb0"), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	return append(b, make([]byte, n)...)
}

// TestTransfers10: a message in several transfers, with others between them that are aborted, and what may not be.
func TestTransfers10(t *testing.T) {
	runWith(t, broker.Options{MaxMessageBytes: 1000}, server.Options{}, func(x *site) {
		ch := x.queue10("q", nil)
		r := x.raw10()
		r.attach(0, "/queues/q")
		r.attach(1, "/queues/q")
		tag, m := []byte("t"), data(900)
		part := func(handle, id uint32, payload []byte, p amqp10.Transfer) {
			p.Handle, p.DeliveryID, p.DeliveryTag = handle, amqp10.Uint(id), tag
			r.send(0, &p, payload...)
		}
		more := amqp10.Transfer{More: true}
		part(0, 0, m[:1], more)
		part(1, 1, m[:500], more)
		part(0, 0, m[1:400], more)
		part(1, 1, m[500:], amqp10.Transfer{Aborted: true})
		part(1, 2, nil, amqp10.Transfer{Aborted: true})
		r.send(0, &amqp10.Transfer{Handle: 0, Settled: false}, m[400:]...)
		accepted := next10[*amqp10.Disposition](r)
		assert.Equal(t, []any{uint32(0), true, amqp10.StateAccepted}, []any{accepted.First, accepted.Settled, accepted.State.Kind})
		part(1, 3, m[:900], more)
		r.send(0, &amqp10.Transfer{Handle: 1, Settled: true}, m[900:]...) // one of them says so: it has no answer
		part(0, 4, data(1001), amqp10.Transfer{})
		rejected := next10[*amqp10.Disposition](r)
		assert.EqualValues(t, 4, rejected.First)
		require.NotNil(t, rejected.State.Error)
		assert.Equal(t, "amqp:link:message-size-exceeded", rejected.State.Error.Condition)
		assert.Equal(t, "message size 1001 is larger than configured max size 1000", rejected.State.Error.Description)
		for range 2 {
			got, ok, err := ch.Get("q", true)
			require.NoError(t, err)
			require.True(t, ok)
			assert.Len(t, got.Body, 900)
		}
		_, ok, err := ch.Get("q", true)
		require.NoError(t, err)
		assert.False(t, ok, "nothing of what was aborted")

		part(0, 5, m[:10], more)
		part(0, 6, m[10:], more)
		r.ended("amqp:not-allowed")
		r.attach(0, "/queues/q")
		r.attach(1, "/queues/q")
		part(0, 0, make([]byte, 66_000), more)
		part(0, 0, make([]byte, 600), more)
		detached := next10[*amqp10.Detach](r)
		assert.Equal(t, "amqp:link:message-size-exceeded", detached.Error.Condition)
		assert.Equal(t, "the message is larger than the largest that is allowed, 1000 octets", detached.Error.Description)
		assert.EqualValues(t, 1, x.clientErrors()["CONTENT_TOO_LARGE - the message is larger than the largest that is allowed, 1000 octets"])
		part(0, 0, make([]byte, 600), amqp10.Transfer{}) // before the client knew
		part(1, 1, data(1), amqp10.Transfer{})
		accepted = next10[*amqp10.Disposition](r)
		assert.Equal(t, []any{uint32(1), amqp10.StateAccepted}, []any{accepted.First, accepted.State.Kind}, "the other link goes on")
		r.nc.Close()
		time.Sleep(time.Second)
	})
}

// TestFullQueueAmongSettled10: what a full queue refuses is not said to be accepted, though a message before it whose sender does not want to know was
// refused as well.
func TestFullQueueAmongSettled10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.queue10("q", amqp091.Table{"x-max-length": int64(1), "x-overflow": "reject-publish"})
		r := x.raw10()
		r.attach(0, "/queues/q")
		var together []byte
		for i := range uint32(4) {
			together = amqp10.AppendFrame(together, 0, &amqp10.Transfer{DeliveryID: amqp10.Uint(i), DeliveryTag: []byte("t"), Settled: i == 1}, data(1))
		}
		r.write(together)
		accepted := next10[*amqp10.Disposition](r)
		assert.Equal(t, []any{uint32(0), uint32(0), amqp10.StateAccepted}, []any{accepted.First, accepted.Last.Value, accepted.State.Kind})
		for _, id := range []uint32{2, 3} {
			rejected := next10[*amqp10.Disposition](r)
			assert.Equal(t, []any{id, amqp10.StateRejected}, []any{rejected.First, rejected.State.Kind})
		}
		r.nc.Close()
		time.Sleep(time.Second)
	})
}

// TestSessionEndsWhileItsPublishWaits10: the publish is abandoned, and the connection goes on.
func TestSessionEndsWhileItsPublishWaits10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.queue10("q", amqp091.Table{"x-consumer-timeout": int64(60_000)})
		x.publish(ch, "q", "held")
		r := x.raw10()
		r.attach(0, "/queues/q")
		r.send(0, &amqp10.Attach{Name: "r", Handle: 1, Role: amqp10.RoleReceiver, Source: &amqp10.Source{Address: "/queues/q"}})
		next10[*amqp10.Attach](r)
		r.send(0, &amqp10.Flow{IncomingWindow: 100, Handle: amqp10.Uint(1), LinkCredit: amqp10.Uint(1)})
		next10[*amqp10.Transfer](r)
		x.setAlarm(true)
		publish := func() {
			r.send(0, &amqp10.Transfer{DeliveryID: amqp10.Uint(0), DeliveryTag: []byte("t")}, data(1)...)
		}
		publish()
		end := next10[*amqp10.End](r)
		assert.Equal(t, "amqp:precondition-failed", end.Error.Condition)
		x.setAlarm(false)
		r.send(0, &amqp10.End{})
		r.begin(0)
		r.attach(0, "/queues/q")
		publish()
		assert.Equal(t, amqp10.StateAccepted, next10[*amqp10.Disposition](r).State.Kind)
		var got []string
		for ok := true; ok; {
			var d amqp091.Delivery
			var err error
			d, ok, err = ch.Get("q", true)
			require.NoError(t, err)
			got = append(got, string(d.Body))
		}
		assert.Equal(t, []string{"held", "\x00", ""}, got)
		r.nc.Close()
		time.Sleep(time.Second)
	})
}

// TestAbortedCredit10: a message that was aborted has used up credit, as for the client: there is always more.
func TestAbortedCredit10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.queue10("q", nil)
		r := x.raw10()
		r.send(0, &amqp10.Attach{Target: &amqp10.Target{Address: "/queues/q"}, InitialDeliveryCount: amqp10.Uint(7)})
		next10[*amqp10.Attach](r)
		credit, count, window, next := uint32(0), uint32(7), uint32(16384), uint32(0)
		take := func() {
			f := next10[*amqp10.Flow](r)
			window = f.NextIncomingID.Value + f.IncomingWindow - next
			if f.Handle.Set {
				credit = f.DeliveryCount.Value + f.LinkCredit.Value - count
			}
		}
		for take(); next < 40_000; {
			var b []byte
			for n := min(credit, window); n > 0; n-- {
				b = amqp10.AppendFrame(b, 0, &amqp10.Transfer{DeliveryID: amqp10.Uint(next), Settled: true, Aborted: true}, nil)
				next, count, credit, window = next+1, count+1, credit-1, window-1
			}
			r.write(b)
			for credit == 0 || window == 0 {
				take()
			}
		}
		r.nc.Close()
		time.Sleep(time.Second)
	})
}

// TestPriorityAndAbsoluteExpiry10: both are obeyed, and told, over AMQP 1.0. The history of what has died again and again says when it last did.
func TestPriorityAndAbsoluteExpiry10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.queue10("q", amqp091.Table{"x-max-priority": int32(9), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
		x.queue10("dead", amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
		c, s := x.connect10(nil)
		snd := x.sender10(s, "/queues/q")
		send := func(body string, priority uint8, expiry *time.Time) {
			m := &goamqp.Message{Header: &goamqp.MessageHeader{Priority: priority}, Properties: &goamqp.MessageProperties{AbsoluteExpiryTime: expiry}, Data: [][]byte{[]byte(body)}}
			require.NoError(t, snd.Send(x.t.Context(), m, nil))
		}
		at := time.Now().Add(10 * time.Second).Truncate(time.Millisecond).UTC()
		send("usual", 5, nil)
		send("low", 0, nil)
		send("mortal", 1, &at)
		send("high", 9, nil)
		rcv := x.receiver10(s, "/queues/q", nil)
		for _, want := range []struct {
			body     string
			priority uint8
		}{{"high", 9}, {"usual", 5}, {"mortal", 1}, {"low", 0}} {
			m := x.receive10(rcv)
			assert.Equal(t, want.body, string(m.GetData()))
			assert.Equal(t, want.priority, m.Header.Priority)
			if want.body != "mortal" {
				require.NoError(t, rcv.AcceptMessage(x.t.Context(), m))
				continue
			}
			assert.Equal(t, at, m.Properties.AbsoluteExpiryTime.UTC())
			require.NoError(t, rcv.ReleaseMessage(x.t.Context(), m))
			again := x.receive10(rcv)
			assert.Equal(t, "mortal", string(again.GetData()))
			require.NoError(t, rcv.RejectMessage(x.t.Context(), again, nil))
		}
		require.NoError(t, rcv.Close(x.t.Context()))
		dead := x.receiver10(s, "/queues/dead", nil)
		m := x.receive10(dead)
		assert.Equal(t, "mortal", string(m.GetData()))
		first := time.Now().Truncate(time.Second)
		require.NoError(t, dead.RejectMessage(x.t.Context(), m, nil))
		time.Sleep(time.Minute)
		rcv = x.receiver10(s, "/queues/q", nil)
		require.NoError(t, rcv.RejectMessage(x.t.Context(), x.receive10(rcv), nil))
		deaths := x.receive10(dead).Annotations["x-opt-deaths"].([]map[any]any)
		assert.Len(t, deaths, 2)
		assert.Equal(t, []any{"q", uint64(2)}, []any{deaths[0]["queue"], deaths[0]["count"]})
		assert.WithinDuration(t, first, deaths[0]["first-time"].(time.Time), time.Second)
		assert.WithinDuration(t, first.Add(time.Minute), deaths[0]["last-time"].(time.Time), 3*time.Second)

		send("late", 4, new(time.Now().Add(-time.Second)))
		x.noMore10(rcv)
		send("soon", 4, new(time.Now().Add(10*time.Second)))
		m = x.receive10(rcv)
		assert.Equal(t, "soon", string(m.GetData()))
		time.Sleep(11 * time.Second)
		require.NoError(t, rcv.ReleaseMessage(x.t.Context(), m))
		x.noMore10(rcv)
		require.Error(t, snd.Send(x.t.Context(), &goamqp.Message{Properties: &goamqp.MessageProperties{UserID: []byte(strings.Repeat("guest", 60))}, Data: [][]byte{nil}}, nil))
		x.close10(c)
	})
}
