package server_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/server"
)

// small is a broker whose clients may make it hold 4 MiB besides messages in queues.
var small = broker.Options{MaxMessageBytes: 2 << 20}

// login creates a user with all permissions and connects as that user.
func (x *site) login(name string) *amqp091.Connection {
	x.t.Helper()
	x.user(name, ".*", ".*", ".*")
	c, err := x.tryConnect(as(name))
	require.NoError(x.t, err)
	return c
}

// flood writes for as long as the server reads, and returns the server's answer.
func (x *site) flood(c *raw, part func(i int) []byte) (answer string) {
	x.t.Helper()
	ended := make(chan string)
	go func() {
		all, _ := io.ReadAll(c.r)
		ended <- string(all)
	}()
	closed := x.s.Totals.ConnectionsClosed.Load()
	for i := 0; x.s.Totals.ConnectionsClosed.Load() == closed; i++ {
		if _, err := c.Write(part(i)); err != nil {
			break
		}
		synctest.Wait()
		assert.LessOrEqual(x.t, x.b.Clients.Used(), x.b.Clients.Limit)
	}
	return <-ended // when the client's time to answer has passed
}

// others publishes a large message in pieces and gets it.
func (x *site) others(c *amqp091.Connection) {
	x.t.Helper()
	ch := x.channel(c)
	x.queue(ch, "mine", nil)
	body := bytes.Repeat([]byte("b"), small.MaxMessageBytes)
	require.NoError(x.t, ch.Publish("", "mine", false, false, amqp091.Publishing{Body: body}))
	d, ok, err := ch.Get("mine", true)
	require.NoError(x.t, err)
	require.True(x.t, ok)
	assert.Equal(x.t, body, d.Body)
}

func onChannel(id uint16, m amqp.Method) []byte { return amqp.AppendMethod(nil, id, m) }

// unfinished is a publish on its own channel whose body never comes, with a header of about
// that many octets.
func unfinished(id uint16, header int) []byte {
	b := onChannel(id, &amqp.ChannelOpen{})
	b = append(b, onChannel(id, &amqp.BasicPublish{RoutingKey: "k"})...)
	p := amqp.Properties{Headers: amqp.Table{"h": strings.Repeat("h", header)}}
	return append(b, contentHeader(id, 100, &p)...)
}

// contentHeader returns a header frame for a body of that size.
func contentHeader(id uint16, size int, p *amqp.Properties) []byte {
	b := amqp.AppendContent(nil, id, p.Append(nil), nil, 0)
	binary.BigEndian.PutUint64(b[7+4:], uint64(size))
	return b
}

// contentBody returns a body frame.
func contentBody(id uint16, part []byte) []byte {
	b := amqp.AppendContent(nil, id, nil, part, 0)
	return b[len(amqp.AppendContent(nil, id, nil, nil, 0)):]
}

func TestUnfinishedPublishesAreBounded(t *testing.T) {
	for name, header := range map[string]int{"large headers": 120 << 10, "small headers": 2 << 10, "none": 0} {
		t.Run(name, func(t *testing.T) {
			runWith(t, small, server.Options{}, func(x *site) {
				alice := x.login("alice")
				for range 3 {
					c := x.raw()
					next := uint16(1)
					answer := x.flood(c, func(int) []byte {
						if next++; next == 2047 {
							next = 1
						}
						return unfinished(next, header)
					})
					if header > 0 {
						assert.Contains(t, answer, "RESOURCE_ERROR - ")
					}
					x.others(alice)
					c.Close()
					synctest.Wait()
				}
				require.NoError(t, alice.Close())
				synctest.Wait()
				assert.Zero(t, x.b.Clients.Used(), "all is given back")
			})
		})
	}
}

// Bodies that lack only the last octet are bounded too, and other clients' messages take
// precedence over them.
func TestUnfinishedBodiesAreBounded(t *testing.T) {
	runWith(t, small, server.Options{}, func(x *site) {
		alice := x.login("alice")
		c := x.raw()
		piece := bytes.Repeat([]byte("p"), 100<<10)
		answer := x.flood(c, func(i int) []byte {
			id := uint16(i/15) + 2 // bodies of 1.6 MB each
			var b []byte
			if i%15 == 0 {
				b = onChannel(id, &amqp.ChannelOpen{})
				b = append(b, onChannel(id, &amqp.BasicPublish{RoutingKey: "k"})...)
				b = append(b, contentHeader(id, 1600<<10, new(amqp.Properties))...)
			}
			return append(b, contentBody(id, piece)...)
		})
		assert.Contains(t, answer, "RESOURCE_ERROR - ")
		x.others(alice)
	})
}

func TestConsumersAreBounded(t *testing.T) {
	runWith(t, small, server.Options{}, func(x *site) {
		alice := x.login("alice")
		x.queue(x.channel(alice), "q", nil)
		c := x.raw()
		answer := x.flood(c, func(i int) (b []byte) {
			for j := range 64 {
				b = append(b, onChannel(1, &amqp.BasicConsume{Queue: "q", ConsumerTag: fmt.Sprint(i, " ", j), NoWait: true})...)
			}
			return b
		})
		assert.Contains(t, answer, "RESOURCE_ERROR - ")
		x.others(alice)
		c.Close()
		synctest.Wait()
		vh, _ := x.b.VHost("/")
		q, err := vh.Queues.Get("q")
		require.NoError(t, err)
		_, _, consumers := q.Messages.Counts()
		assert.Zero(t, consumers)
	})
}

// Of long arguments only the meaningful ones are kept; other arguments are kept for
// display.
func TestArgumentsOfConsumersAreNotKept(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		consume := func(tag string, args amqp091.Table) {
			_, err := ch.Consume("q", tag, true, false, false, false, args)
			require.NoError(t, err)
		}
		consume("few", amqp091.Table{"x-priority": int32(7), "mine": "text"})
		consume("many", amqp091.Table{"x-priority": int32(8), "mine": strings.Repeat("t", 100_000)})
		consume("none", nil)
		shown := map[string]amqp.Table{}
		for _, c := range x.s.List()[0].Channels[0].Consumers {
			shown[c.Tag] = c.Arguments
		}
		assert.Equal(t, map[string]amqp.Table{
			"few": {"x-priority": int32(7), "mine": "text"}, "many": {"x-priority": int32(8)}, "none": nil,
		}, shown)
		for _, tag := range []string{"few", "many", "none"} {
			require.NoError(t, ch.Cancel(tag, false))
		}
		assert.Zero(t, x.b.Clients.Used())
	})
}

// What a transaction holds until its commit is accounted for: messages to be returned, and
// places in queues.
func TestTransactionsAreBounded(t *testing.T) {
	runWith(t, small, server.Options{}, func(x *site) {
		alice := x.login("alice")
		c := x.raw()
		c.send(&amqp.TxSelect{})
		c.expect(amqp.TxSelectOkID)
		answer := x.flood(c, func(int) []byte {
			b := onChannel(1, &amqp.BasicPublish{RoutingKey: "nowhere", Mandatory: true})
			b = append(b, contentHeader(1, 1000, new(amqp.Properties))...)
			return append(b, contentBody(1, make([]byte, 1000))...)
		})
		assert.Contains(t, answer, "RESOURCE_ERROR - ")
		x.others(alice)
	})
}

// A client that does not read its direct replies loses those for which there is no memory.
func TestDirectRepliesAreBounded(t *testing.T) {
	runWith(t, small, server.Options{}, func(x *site) {
		alice := x.login("alice")
		answers := x.channel(alice)
		x.queue(answers, "requests", nil)
		requests, err := answers.Consume("requests", "", true, false, false, false, nil)
		require.NoError(t, err)
		for range 3 { // they send requests and then stop reading
			c := x.raw()
			c.send(&amqp.BasicConsume{Queue: "amq.rabbitmq.reply-to", NoAck: true})
			c.expect(amqp.BasicConsumeOkID)
			c.send(&amqp.BasicPublish{RoutingKey: "requests"})
			p := amqp.Properties{ReplyTo: "amq.rabbitmq.reply-to"}
			c.write(contentHeader(1, 0, &p))
			to := (<-requests).ReplyTo
			for range 20 { // of 1 MB, within the time in which a client must read something
				require.NoError(t, answers.Publish("", to, false, false, amqp091.Publishing{Body: make([]byte, 1<<20)}))
				synctest.Wait()
				assert.LessOrEqual(t, x.b.Clients.Used(), x.b.Clients.Limit)
			}
		}
		assert.Positive(t, x.s.RepliesLost())
		x.others(alice)
	})
}
