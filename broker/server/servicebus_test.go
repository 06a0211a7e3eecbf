package server_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/Azure/go-amqp"
	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp10"
	"curfew/broker/policy"
	"curfew/broker/server"
	"curfew/broker/servicebus"
)

var busKeys = []servicebus.Key{
	{Name: "root", Key: "cm9vdA==", Claims: servicebus.Listen | servicebus.Send | servicebus.Manage},
	{Name: "sender", Key: "c2VuZA==", Claims: servicebus.Send},
}

// bus is a client of Service Bus: a session, and its links to and from $cbs.
type bus struct {
	x *site
	*amqp.Session
	c   *amqp.Conn
	ask func(request *amqp.Message) *amqp.Message
}

func (x *site) bus(o *amqp.ConnOptions) *bus {
	x.t.Helper()
	o.SASLType = amqp.SASLTypeAnonymous()
	c, s := x.connect10(o)
	b := &bus{x: x, Session: s, c: c}
	b.ask = b.node("$cbs")
	return b
}

// node asks a node, by a pair of links.
func (b *bus) node(address string) func(request *amqp.Message) *amqp.Message {
	b.x.t.Helper()
	snd := b.x.sender10(b.Session, address)
	rcv := b.x.receiver10(b.Session, address, &amqp.ReceiverOptions{Name: address + "-answers"})
	return func(request *amqp.Message) *amqp.Message {
		b.x.t.Helper()
		to := address + "-answers"
		request.Properties = &amqp.MessageProperties{MessageID: "1", ReplyTo: &to}
		require.NoError(b.x.t, snd.Send(b.x.t.Context(), request, nil))
		return b.x.receive10(rcv)
	}
}

// token presents a token of a key for an entity, for an hour.
func (b *bus) token(key servicebus.Key, entity string) (status int32) {
	b.x.t.Helper()
	name := "amqp://host/" + entity
	signed := url.QueryEscape(strings.ToLower(name)) + "\n" + strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key.Key))
	mac.Write([]byte(signed))
	sr, se, _ := strings.Cut(signed, "\n")
	token := "SharedAccessSignature sr=" + sr + "&sig=" + url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil))) + "&se=" + se + "&skn=" + key.Name
	m := b.ask(&amqp.Message{Value: token, ApplicationProperties: fields{"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": name}})
	return m.ApplicationProperties["status-code"].(int32)
}

// manage asks the $management of an entity.
func (b *bus) manage(ask func(*amqp.Message) *amqp.Message, operation string, body fields) (status int32, answer fields) {
	m := ask(&amqp.Message{Value: body, ApplicationProperties: fields{"operation": "com.microsoft:" + operation}})
	answer, _ = m.Value.(fields)
	return m.ApplicationProperties["statusCode"].(int32), answer
}

func (b *bus) refused(want string, err error) {
	b.x.t.Helper()
	var refused *amqp.Error
	require.ErrorAs(b.x.t, err, &refused)
	assert.Equal(b.x.t, amqp.ErrCond(want), refused.Condition)
}

func busOptions() server.Options {
	return server.Options{ServiceBus: servicebus.Options{Keys: busKeys, User: "guest"}}
}

// TestServiceBusRights: a client of Service Bus does what its tokens allow, and nothing else, whatever the user may do that it acts as.
func TestServiceBusRights(t *testing.T) {
	run(t, busOptions(), func(x *site) {
		x.queue10("q", amqp091.Table{"x-dead-letter-queue": true})
		x.queue10("t/Subscriptions/s", nil)
		x.queue10("other", nil)
		x.queue10("q/$deferred", nil)
		_, _, err := x.b.PutVHost("guest", "elsewhere", broker.VHostMetadata{})
		require.NoError(t, err)
		c := x.bus(&amqp.ConnOptions{HostName: "vhost:elsewhere"})
		_, err = c.NewReceiver(x.t.Context(), "none", nil)
		c.refused("amqp:unauthorized-access", err)
		_, err = c.NewSender(x.t.Context(), "", nil)
		c.refused("amqp:unauthorized-access", err)
		require.Equal(t, int32(202), c.token(busKeys[1], "q"), "entities are in the virtual host /")
		require.Equal(t, int32(404), c.token(busKeys[1], "q/$deferred"))
		_, err = c.NewReceiver(x.t.Context(), "q", nil)
		c.refused("amqp:unauthorized-access", err)
		for _, notTo := range []string{"q/$deadletterqueue", "t/Subscriptions/s"} {
			require.Equal(t, int32(202), c.token(busKeys[1], notTo))
			_, err = c.NewSender(x.t.Context(), notTo, nil)
			c.refused("amqp:not-allowed", err)
		}
		snd := x.sender10(c.Session, "q")
		reply := "other"
		require.NoError(t, snd.Send(x.t.Context(), &amqp.Message{
			Data: [][]byte{nil}, Properties: &amqp.MessageProperties{ReplyTo: &reply, To: &reply}, Header: &amqp.MessageHeader{TTL: time.Second},
			ApplicationProperties: fields{"CC": []any{"other"}, "BCC": []any{"other"}}, Annotations: amqp.Annotations{"x-expiry-receipt": true, "x-delay": int64(1)},
		}, nil))
		assert.Equal(t, 1, x.ready("q"))
		require.Equal(t, int32(202), c.token(busKeys[0], "q"))
		m := x.receive10(x.receiver10(c.Session, "q", nil))
		assert.Contains(t, m.ApplicationProperties, "CC")
		require.NoError(t, snd.Send(x.t.Context(), &amqp.Message{
			Data: [][]byte{nil}, Properties: &amqp.MessageProperties{ReplyTo: &reply}, Header: &amqp.MessageHeader{TTL: time.Millisecond},
			Annotations: amqp.Annotations{"x-expiry-receipt": true},
		}, nil))
		time.Sleep(time.Minute)
		assert.Zero(t, x.ready("other"))
		x.close10(c.c)
	})
}

// TestServiceBusTokens: links do not outlive their tokens, and no connection stays for long without one.
func TestServiceBusTokens(t *testing.T) {
	run(t, busOptions(), func(x *site) {
		x.queue10("q", nil)
		none := x.bus(&amqp.ConnOptions{IdleTimeout: -1})
		c := x.bus(&amqp.ConnOptions{})
		require.Equal(t, int32(202), c.token(busKeys[0], "q"))
		snd, rcv := x.sender10(c.Session, "q"), x.receiver10(c.Session, "q", &amqp.ReceiverOptions{Credit: -1})
		require.NoError(t, snd.Send(x.t.Context(), &amqp.Message{Data: [][]byte{nil}}, nil))
		time.Sleep(59 * time.Minute)
		_, err := none.c.NewSession(x.t.Context(), nil)
		var closed *amqp.ConnError
		require.ErrorAs(t, err, &closed)
		require.NotNil(t, closed.RemoteErr)
		assert.Equal(t, "no valid token within 1m0s", closed.RemoteErr.Description)
		require.NoError(t, snd.Send(x.t.Context(), &amqp.Message{Data: [][]byte{nil}}, nil))
		time.Sleep(2 * time.Minute)
		c.refused("amqp:unauthorized-access", snd.Send(x.t.Context(), &amqp.Message{Data: [][]byte{nil}}, nil))
		require.NoError(t, rcv.IssueCredit(1))
		_, err = rcv.Receive(x.t.Context(), nil)
		var gone *amqp.LinkError
		require.ErrorAs(t, err, &gone)
		assert.Equal(t, amqp.ErrCond("amqp:unauthorized-access"), gone.RemoteErr.Condition)
		require.Equal(t, int32(202), c.token(busKeys[0], "q"))
		require.NoError(t, snd.Send(x.t.Context(), &amqp.Message{Data: [][]byte{nil}}, nil), "a new one is for the links that are there")
		assert.Equal(t, 3, x.ready("q"))
		x.close10(c.c)
	})
}

// TestServiceBusBatchInFullQueue: none of a batch enters a queue that has no room for all of it.
func TestServiceBusBatchInFullQueue(t *testing.T) {
	run(t, busOptions(), func(x *site) {
		x.queue10("q", amqp091.Table{"x-max-length": 3, "x-overflow": "reject-publish"})
		c := x.bus(&amqp.ConnOptions{})
		require.Equal(t, int32(202), c.token(busKeys[0], "q"))
		snd := x.sender10(c.Session, "q")
		batch := &amqp.Message{Format: 0x80013700}
		for range 2 {
			one, err := (&amqp.Message{Data: [][]byte{[]byte("body")}}).MarshalBinary()
			require.NoError(t, err)
			batch.Data = append(batch.Data, one)
		}
		require.NoError(t, snd.Send(x.t.Context(), batch, nil))
		c.refused("amqp:resource-limit-exceeded", snd.Send(x.t.Context(), batch, nil))
		assert.Equal(t, 2, x.ready("q"))
		x.close10(c.c)
	})
}

// TestServiceBusDeferred: a deferred message can be received and settled whatever its size, wherever it came from, and whatever policies there are.
func TestServiceBusDeferred(t *testing.T) {
	run(t, busOptions(), func(x *site) {
		ch := x.queue10("q", amqp091.Table{"x-delivery-deadline": true, "x-dead-letter-queue": true})
		vh, _ := x.b.VHost("/")
		_, err := vh.Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: "deferred$", ApplyTo: policy.Queues, Definition: policy.Definition{
			"max-length": int64(1), "overflow": "reject-publish", "expires": int64(1000),
		}})
		require.NoError(t, err)
		c := x.bus(&amqp.ConnOptions{})
		require.Equal(t, int32(202), c.token(busKeys[0], "q"))
		snd, rcv := x.sender10(c.Session, "q"), x.receiver10(c.Session, "q", nil)
		ask := c.node("q/$management")
		receive := func(mode uint32, numbers ...int64) (int32, []any) {
			status, answer := c.manage(ask, "receive-by-sequence-number", fields{"sequence-numbers": numbers, "receiver-settle-mode": mode})
			all, _ := answer["messages"].([]any)
			return status, all
		}
		deferred := func(size int) int64 {
			require.NoError(t, snd.Send(x.t.Context(), &amqp.Message{Data: [][]byte{make([]byte, size)}}, nil))
			m := x.receive10(rcv)
			require.NoError(t, rcv.ModifyMessage(x.t.Context(), m, &amqp.ModifyMessageOptions{UndeliverableHere: true}))
			time.Sleep(time.Second)
			return m.Annotations["x-opt-sequence-number"].(int64)
		}
		large := deferred(3 << 20)
		time.Sleep(time.Minute)
		status, all := receive(0, large)
		assert.Equal(t, int32(200), status)
		assert.Len(t, all, 1)

		n := deferred(1)
		status, all = receive(1, n)
		assert.Equal(t, int32(200), status)
		require.Len(t, all, 1)
		status, _ = c.manage(ask, "update-disposition", fields{"disposition-status": "completed", "lock-tokens": []amqp.UUID{all[0].(fields)["lock-token"].(amqp.UUID)}})
		assert.Equal(t, int32(200), status, "without locks on the queue it has one")

		both := []int64{deferred(1 << 20), deferred(1 << 10)}
		assert.Equal(t, 1, x.ready("q/$deferred"))
		assert.Equal(t, 1, x.ready("q/$deadletterqueue"), "the limit of a policy makes it a dead letter")
		status, _ = receive(0, both...)
		assert.Equal(t, int32(200), status)
		deferred(1)
		_, err = ch.QueueDelete("q", false, false, false)
		require.NoError(t, err)
		assert.False(t, vh.Queues.Has("q/$deferred"))
		x.close10(c.c)
	})
}

// TestServiceBusRejection: what a client says about a dead letter fits into a frame of AMQP 0-9-1.
func TestServiceBusRejection(t *testing.T) {
	run(t, busOptions(), func(x *site) {
		x.queue10("q", amqp091.Table{"x-delivery-deadline": true, "x-dead-letter-queue": true})
		c := x.bus(&amqp.ConnOptions{})
		for _, entity := range []string{"q", "q/$deadletterqueue"} {
			require.Equal(t, int32(202), c.token(busKeys[0], entity))
		}
		snd, rcv, dead := x.sender10(c.Session, "q"), x.receiver10(c.Session, "q", nil), x.receiver10(c.Session, "q/$deadletterqueue", nil)
		for size, kept := range map[int]int{100: 100, 40 << 10: 4096} {
			require.NoError(t, snd.Send(x.t.Context(), &amqp.Message{Data: [][]byte{nil}}, nil))
			require.NoError(t, rcv.RejectMessage(x.t.Context(), x.receive10(rcv), &amqp.Error{Condition: "com.microsoft:dead-letter", Info: fields{
				"DeadLetterReason": strings.Repeat("r", size), "octets": make([]byte, size),
			}}))
			m := x.receive10(dead)
			assert.Len(t, m.ApplicationProperties["DeadLetterReason"], kept)
			if size == kept {
				assert.Equal(t, make([]byte, size), m.ApplicationProperties["octets"])
			} else {
				assert.NotContains(t, m.ApplicationProperties, "octets")
			}
			require.NoError(t, dead.AcceptMessage(x.t.Context(), m))
		}
		x.close10(c.c)
	})
}

// TestServiceBusDefersAll: one disposition may name deliveries of several links. A request without reply-to, as Microsoft's SDK for Python makes it, is answered.
func TestServiceBusDefersAll(t *testing.T) {
	run(t, server.Options{ServiceBus: servicebus.Options{Emulator: true, User: "guest"}}, func(x *site) {
		r := x.raw10By(&amqp10.SASLInit{Mechanism: "ANONYMOUS"})
		r.send(0, &amqp10.Attach{Name: "s", Target: &amqp10.Target{Address: "$cbs"}})
		next10[*amqp10.Attach](r)
		next10[*amqp10.Flow](r)
		attach := func(handle uint32, address string) {
			r.send(0, &amqp10.Attach{Name: address, Handle: handle, Role: amqp10.RoleReceiver, Source: &amqp10.Source{Address: address}, Target: &amqp10.Target{}})
			next10[*amqp10.Attach](r)
			r.send(0, &amqp10.Flow{IncomingWindow: 100, Handle: amqp10.Uint(handle), LinkCredit: amqp10.Uint(10)})
		}
		attach(1, "$cbs")
		var ids []uint32
		for i, name := range []string{"a", "b"} {
			x.publish(x.queue10(name, nil), name, "body")
			request := (&amqp10.Properties{MessageID: "1", ReplyTo: []any{"$cbs", nil}[i]}).Append(nil)
			request = amqp10.AppendSection(request, amqp10.SectionApplicationProperties, amqp10.Map{{Key: "operation", Value: "put-token"}, {Key: "name", Value: "sb://host/" + name}})
			r.send(0, &amqp10.Transfer{DeliveryID: amqp10.Uint(uint32(i)), Settled: true}, amqp10.AppendSection(request, amqp10.SectionValue, "any")...)
			next10[*amqp10.Transfer](r)
			attach(uint32(2+i), name)
			ids = append(ids, next10[*amqp10.Transfer](r).DeliveryID.Value)
		}
		r.send(0, &amqp10.Disposition{
			Role: amqp10.RoleReceiver, First: ids[0], Last: amqp10.Uint(ids[1]), Settled: true, State: &amqp10.State{Kind: amqp10.StateModified, UndeliverableHere: true},
		})
		time.Sleep(time.Second)
		for _, name := range []string{"a", "b"} {
			assert.Zero(t, x.ready(name))
			assert.Equal(t, 1, x.ready(name+"/$deferred"))
		}
		r.nc.Close()
		time.Sleep(time.Second)
	})
}
