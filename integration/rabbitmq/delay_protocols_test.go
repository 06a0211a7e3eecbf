package rabbitmq

import (
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/broker/operate/messages"
	"curfew/integration/testenv"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/delay"
	"curfew/monitor/rabbitmq/keeper"
)

// ofAllKinds are messages with all properties, with each type of header, and with none. Those with a message-id are named by it.
func ofAllKinds() []amqp091.Publishing {
	at := time.Unix(time.Now().Unix()-10, 0)
	return []amqp091.Publishing{
		{},
		{DeliveryMode: amqp091.Transient, Body: []byte("body")},
		{MessageId: "all", Headers: amqp091.Table{"a": "b"}, ContentType: "text/plain", ContentEncoding: "gzip", DeliveryMode: amqp091.Persistent, Priority: 5, CorrelationId: "c",
			ReplyTo: "r/ä %41", Expiration: "86400000", Timestamp: at, Type: "type", UserId: "guest", AppId: "app", Body: []byte("body")},
		{MessageId: "priority", Priority: 4},
		{MessageId: "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6", CorrelationId: "urn:uuid:F81D4FAE-7dec-11d0-a765-00a0c91e6bf6"},
		{MessageId: "numbers", Headers: amqp091.Table{"a": int8(-1), "b": int16(-2), "c": int32(-3), "d": int64(-4), "e": byte(200), "f": uint16(60000), "g": uint32(4e9), "h": float32(1.5), "i": 2.5,
			"x-a": int8(-1), "x-c": int32(-3), "x-d": int64(-4), "x-e": byte(200), "x-h": float32(1.5), "x-i": 2.5}},
		{MessageId: "types", Headers: amqp091.Table{"a": true, "b": nil, "c": at, "d": []byte{1, 2}, "x-a": false, "x-b": nil, "x-c": at, "x-d": []byte{1, 2}}},
		{MessageId: "texts", Headers: amqp091.Table{"a": strings.Repeat("é", 200), "b": "\xff\xfe", "c": "a\x00b", "d": strings.Repeat("x", 5000), "e": "", "x-a": strings.Repeat("é", 200), "x-b": "\xff\xfe"}},
		{MessageId: "tables", Headers: amqp091.Table{"t": amqp091.Table{"a": int32(1)}, "l": []any{"a", int32(2)}, "CC": []any{"c.d"}, "x-empty": []any{}, "x-none": amqp091.Table{},
			"x-t": amqp091.Table{"a": int32(1), "b": amqp091.Table{"c": []any{"x", []byte("y"), nil}}}, "x-l": []any{"a", int64(2), amqp091.Table{"z": "y"}}}},
		{MessageId: "names", Headers: amqp091.Table{"x-exchange": "e", "x-routing-key": "k", "x-opt-deaths": "d", "x-opt-rabbitmq-received-time": "n", "x-cc": "own"}},
	}
}

// TestDelayedOverBothProtocols: a Curfew that can connect with AMQP 0-9-1 only has messages of all kinds, and is followed by one that reads them over AMQP 1.0 where
// RabbitMQ has it, and that one by another of the first kind, unless RabbitMQ has put all aside. Each knows from Redis, or from RabbitMQ, when each message is due.
func TestDelayedOverBothProtocols(t *testing.T) {
	t.Parallel()
	d := declareDelays(t, sharedNode(t))
	redis := testenv.StartRedis(t)
	p := startProxy(t, d.n.addr)
	p.bar()
	barred := urlsIn("guest", []*node{{addr: p.addr}}, d.vhost)
	order, engines := []string{barred, d.url, barred}, map[string]string{barred: "hold", d.url: "hold"}
	if family() == cluster.Family43 {
		order, engines[d.url] = order[:2], "aside+hold" // what is aside is out of reach
	}
	var first map[string]int64
	for _, at := range order {
		r := startReplica(t, d.n, at, redis.URL, "one", "delay:foo.delay")
		all := ofAllKinds()
		if first == nil {
			d.bound()
			for _, m := range all {
				if m.Headers == nil {
					m.Headers = amqp091.Table{}
				}
				m.Headers["x-delay"] = time.Hour.Milliseconds()
				c, err := d.publish.PublishWithDeferredConfirm("foo", "a.b", false, false, m)
				check(t, err)
				require.True(t, c.Wait())
			}
		}
		var due map[string]int64
		eventually(t, answerLimit, "all to wait", func() bool {
			q := r.queue("foo.delay")
			due = r.due("foo.delay")
			return q.Engine == engines[at] && q.CaughtUp && q.Held+q.AsideKnown == len(all)
		})
		require.Zero(t, r.queue("foo.delay").UnknownAge)
		if first == nil {
			first = due
			require.Len(t, first, len(all)-1, "two have no message-id")
		}
		for id, when := range due {
			require.InDelta(t, first[id], when, 2, "%s: when it is due, in ms", id)
		}
		time.Sleep(2 * time.Second) // Redis has it then, and messages that nobody knows begin later
		check(t, r.cmd.Process.Kill())
	}
}

// TestDelayedWithoutATrace: a message that was held until it was due arrives as if it had never waited. Over AMQP 0-9-1, RabbitMQ 4.0 to 4.2 would mark it as
// redelivered, with x-delivery-count.
func TestDelayedWithoutATrace(t *testing.T) {
	t.Parallel()
	d := declareDelays(t, sharedNode(t))
	_, err := d.publish.QueueDeclare("seen", true, false, false, false, amqp091.Table{"x-queue-type": "quorum"})
	check(t, err)
	check(t, d.publish.QueueBind("seen", "#", "foo.now", false, nil))
	startReplica(t, d.n, d.url, "", "one", "delay:foo.delay")
	d.bound()
	const sent = 20
	for i := range sent {
		require.True(t, d.send(strconv.Itoa(i), time.Second, nil, "").Wait())
	}
	for range sent {
		var m amqp091.Delivery
		eventually(t, answerLimit, "a message", func() (there bool) {
			m, there, err = d.publish.Get("seen", true)
			check(t, err)
			return there
		})
		require.False(t, m.Redelivered, m.MessageId)
		count, _ := keeper.Integer(m.Headers["x-delivery-count"]) // RabbitMQ 3 says 0
		require.Zero(t, count, m.MessageId)
	}
	d.settled(time.Now().Add(-time.Second))
}

// TestDelayedDecimal: RabbitMQ 4 cannot deliver a message with a decimal in a header over AMQP 1.0. It is delayed over 0-9-1, as are all others, and that is told.
func TestDelayedDecimal(t *testing.T) {
	t.Parallel()
	d := declareDelays(t, sharedNode(t))
	r := startReplica(t, d.n, d.url, "", "one", "delay:foo.delay")
	d.bound()
	require.True(t, d.send("before", 4*time.Second, nil, "").Wait())
	require.True(t, d.send("decimal", 3*time.Second, amqp091.Table{"price": amqp091.Decimal{Scale: 2, Value: 314}}, "").Wait())
	require.True(t, d.send("after", 4*time.Second, nil, "").Wait())
	eventually(t, answerLimit, "all to be held", func() bool { return r.queue("foo.delay").Held == 3 })
	if troubles := r.queue("foo.delay").Troubles; family() != cluster.Family3 {
		require.Len(t, troubles, 1)
		require.Contains(t, troubles[0].Reason, "RabbitMQ fails to deliver a message over AMQP 1.0: Session error: function_clause")
	}
	eventually(t, answerLimit, "all to arrive", func() bool { return d.count() == 3 })
	d.settled(time.Now())
}

// TestReplacesOnlyItsOwn: a user replaces what is theirs, and another user's message with the same message-id, which RabbitMQ has put aside since before this
// Curfew, is delivered, also after Curfew was killed with the tombstone in the queue.
func TestReplacesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	if family() != cluster.Family43 {
		return // nothing is put aside
	}
	d := declareDelays(t, n)
	_, err := d.publish.QueueDeclare("seen", true, false, false, false, nil)
	check(t, err)
	check(t, d.publish.QueueBind("seen", "#", "foo.now", false, nil))
	watch := t.TempDir() + "/watch.yaml"
	check(t, os.WriteFile(watch, []byte("queues: [{queue: '*.delay', mode: delay, cancel: same_user}]"), 0o600))
	start := func() *replica {
		r := startReplica(t, n, d.url, "", "one", watch)
		eventually(t, answerLimit, "all to be read", func() bool { return r.queue("foo.delay").CaughtUp })
		return r
	}
	users := map[string]*amqp091.Channel{}
	for _, user := range []string{"replaces-u", "replaces-v"} {
		users[user] = openChannel(t, dial(t, n.user(t, d.url, user, "", "", "foo", "")))
		check(t, users[user].Confirm(false))
	}
	publish := func(user, id string, delay time.Duration, replaces string) {
		t.Helper()
		headers := amqp091.Table{"x-delay": delay.Milliseconds()}
		if replaces != "" {
			headers["x-replace"] = replaces
		}
		c, err := users[user].PublishWithDeferredConfirm("foo", "a.b", false, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent, MessageId: id, UserId: user, Headers: headers})
		check(t, err)
		require.True(t, c.Wait())
	}
	seen := func() (all []string) {
		for {
			m, there, err := d.publish.Get("seen", true)
			check(t, err)
			if !there {
				return all
			}
			all = append(all, m.UserId+" "+m.MessageId)
		}
	}
	r := start()
	d.bound()
	for _, user := range []string{"replaces-u", "replaces-v"} {
		publish(user, "a", 75*time.Second, "")
		eventually(t, answerLimit, "it to be put aside", func() bool { return r.queue("foo.delay").AsideKnown == 1 })
		if user == "replaces-u" {
			check(t, r.cmd.Process.Kill())
			r = start()
		}
	}
	publish("replaces-v", "b", time.Second, "a")
	eventually(t, answerLimit, "the replacement", func() bool { return d.count() == 1 })
	check(t, r.cmd.Process.Kill())
	r = start()
	eventually(t, 2*time.Minute, "nothing to be left", func() bool {
		q := r.queue("foo.delay")
		return d.count() == 2 && q.Held == 0 && q.Aside == 0
	})
	require.Equal(t, []string{"replaces-v b", "replaces-u a"}, seen())
}

// TestTombstoneRefused: an operator who cancels what is put aside is told at once that RabbitMQ does not let Curfew's user publish that, and Curfew publishes it when
// it may.
func TestTombstoneRefused(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	if family() != cluster.Family43 {
		return // nothing is put aside
	}
	d := declareDelays(t, n)
	const tap, name = `^curfew\.tap\.`, "tombstone-refused"
	r := startReplica(t, n, n.user(t, d.url, name, "monitoring", tap, `^(curfew\.tap\.|foo\.delay)`, ".*"), "", "one", "delay:foo.delay")
	d.bound()
	require.True(t, d.send("a", time.Hour, nil, "").Wait())
	eventually(t, answerLimit, "it to be put aside", func() bool { return r.queue("foo.delay").AsideKnown == 1 })
	for range 2 {
		began := time.Now()
		require.Contains(t, curfewDelays(t, r, "cancel", "a"), "RabbitMQ has not confirmed that a is cancelled")
		require.Less(t, time.Since(began), 8*time.Second, "less than it waits for an answer")
	}
	told := func() bool {
		return slices.ContainsFunc(r.queue("foo.delay").Troubles, func(one delay.Trouble) bool { return one.Name == "tombstone" })
	}
	require.True(t, told())
	n.api(t, http.MethodPut, "permissions/"+d.vhost+"/"+name, map[string]string{"configure": tap, "write": ".*", "read": ".*"}, nil)
	eventually(t, time.Minute, "the tombstone to be there", func() bool { return !told() })
	require.Contains(t, curfewDelays(t, r, "cancel", "a"), "cancelled scheduled message")
}

// due returns when each message of a delay queue is due, in Unix ms, by its message-id.
func (r *replica) due(queue string) map[string]int64 {
	var all []messages.ScheduledMessage
	due := map[string]int64{}
	if r.get("scheduled?exchange="+queue, &all) {
		for _, m := range all {
			due[m.ID] = m.Due
		}
	}
	return due
}
