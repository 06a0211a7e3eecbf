package rabbitmq

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/monitor/rabbitmq/cluster"
)

// open gives access to the virtual host of a URL, with the management API of the node.
func open(t testing.TB, n *node, url string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Open(cluster.Options{URL: url, APIURL: n.http})
	check(t, err)
	return c
}

type table = amqp091.Table

func declare(t testing.TB, ch *amqp091.Channel, name string, args table) {
	t.Helper()
	_, err := ch.QueueDeclare(name, true, false, false, false, args)
	check(t, err)
}

func publish(t testing.TB, ch *amqp091.Channel, exchange, key, expiration string, count int) {
	t.Helper()
	for range count {
		check(t, ch.PublishWithContext(t.Context(), exchange, key, false, false, amqp091.Publishing{Expiration: expiration, DeliveryMode: amqp091.Persistent, Body: []byte("x")}))
	}
}

func keepAll(t testing.TB) cluster.Watch {
	t.Helper()
	w, err := cluster.ParseWatch("keep:*")
	check(t, err)
	return w
}

// TestInventory makes one queue for each reason to refuse that 3.10 has, and one that can be kept of each type.
func TestInventory(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	vhost, url := n.vhost(t)
	conn := dial(t, url)
	ch := openChannel(t, conn)
	policy := func(name, pattern string, definition map[string]any) {
		n.api(t, http.MethodPut, "policies/"+vhost+"/"+name, map[string]any{"pattern": pattern, "definition": definition, "apply-to": "queues"}, nil)
	}
	policy("limited", "^by-policy", map[string]any{"max-length": 10, "overflow": "reject-publish", "message-ttl": 9000})
	policy("ttl", "^ttl-policy$", map[string]any{"message-ttl": 60000})
	n.api(t, http.MethodPut, "operator-policies/"+vhost+"/op", map[string]any{"pattern": "^operator$", "definition": map[string]any{"max-length": 10}, "apply-to": "queues"}, nil)
	n.api(t, http.MethodPut, "operator-policies/"+vhost+"/ttl", map[string]any{"pattern": "^by-policy", "definition": map[string]any{"message-ttl": 5000}, "apply-to": "queues"}, nil)

	want := map[string]cluster.Code{}
	refused := func(name string, code cluster.Code, args table) {
		declare(t, ch, name, args)
		want[name] = code
	}
	refused("quorum", cluster.ByRule, table{"x-queue-type": "quorum", "x-dead-letter-exchange": ""})
	refused("classic", cluster.ByRule, nil)
	refused("priorities", cluster.ByRule, table{"x-max-priority": 5})
	refused("uniform", cluster.UniformTTL, table{"x-message-ttl": 60000})
	refused("ttl-policy", cluster.UniformTTL, nil)
	refused("stream", cluster.IsStream, table{"x-queue-type": "stream"})
	refused("expires", cluster.HasExpires, table{"x-expires": 600000})
	refused("single", cluster.HasSingleActive, table{"x-single-active-consumer": true})
	refused("drop-head", cluster.DropsHead, table{"x-max-length": 10})
	refused("reject", cluster.RejectsPublish, table{"x-max-length-bytes": 1000, "x-overflow": "reject-publish"})
	limited := cluster.LowDeliveryLimit
	if family() == cluster.Family43 { // where a nack does not count
		limited = cluster.ByRule
	}
	refused("limit", limited, table{"x-queue-type": "quorum", "x-delivery-limit": 2})
	refused("taken", cluster.ExclusiveConsumer, nil)
	refused("polled", cluster.IsPolled, nil)
	refused("operator", cluster.DropsHead, nil)
	refused("busy", cluster.ByRule, table{"x-queue-type": "quorum"})
	want["exclusive"], want["auto-delete"], want["by-policy"] = cluster.IsExclusive, cluster.IsAutoDelete, cluster.UniformTTL
	declare(t, ch, "by-policy", nil)
	_, err := ch.QueueDeclare("exclusive", false, false, true, false, nil)
	check(t, err)
	_, err = ch.QueueDeclare("auto-delete", false, true, false, false, nil)
	check(t, err)
	_, err = ch.Consume("taken", "only", false, true, false, false, nil)
	check(t, err)
	check(t, ch.Qos(2, 0, false))
	publish(t, ch, "", "busy", "", 5)
	_, err = ch.Consume("busy", "worker", false, false, false, false, nil)
	check(t, err)

	c := open(t, n, url)
	var i *cluster.Inventory
	// The operator policies of a queue without statistics cannot be known: the statistics come within five seconds.
	eventually(t, answerLimit, "statistics of every queue", func() bool {
		_, _, err := ch.Get("polled", true)
		check(t, err)
		i, err = c.Inventory(t.Context(), nil, "")
		check(t, err)
		for _, q := range i.Queues {
			if q.Unknown != 0 {
				d := cluster.Decide(&q, keepAll(t)[0], i.Server, cluster.TTLStats{}, true)
				require.Contains(t, []cluster.Code{cluster.CannotBeKnown, cluster.IsExclusive, cluster.UniformTTL}, d.Code, q.Name)
				return false
			}
		}
		return i.Queue("polled").Polled && i.Queue("busy").Unacked == 2
	})
	require.Equal(t, serverVersion().Family(), i.Server.Family())
	require.Len(t, i.Queues, len(want))
	some, err := open(t, n, url).Inventory(t.Context(), nil, cluster.Watch{{Pattern: "b?sy", Mode: cluster.Keep}, {Pattern: "by-policy*", Mode: cluster.Keep}}.Measured("/"))
	check(t, err)
	require.Len(t, some.Queues, len(want), "others are listed without statistics")
	for _, q := range []string{"busy", "by-policy"} {
		require.Zero(t, some.Queue(q).Unknown, q)
		require.Equal(t, i.Queue(q).Policy, some.Queue(q).Policy, q)
	}
	require.EqualValues(t, 5, some.Queue("busy").Published)
	require.NotZero(t, some.Queue("classic").Unknown&cluster.UnknownGets)
	for name, code := range want {
		q := i.Queue(name)
		require.NotNil(t, q, name)
		d := cluster.Decide(q, keepAll(t)[0], i.Server, cluster.TTLStats{}, true)
		require.Equal(t, code, d.Code, "%s: %+v", name, d)
	}
	busy := i.Queue("busy")
	require.EqualValues(t, 3, busy.Ready)
	require.Equal(t, 1, busy.Consumers)
	require.Equal(t, "worker", busy.Attached[0].Tag)
	ttl, _ := i.Queue("by-policy").TTLMillis()
	require.EqualValues(t, 5000, ttl, "the operator policy's is lower")
}

// TestInventoryWithoutRights: a user who may not ask the management API learns less, and why.
func TestInventoryWithoutRights(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	_, url := n.vhost(t)
	owner := openChannel(t, dial(t, url))
	declare(t, owner, "orders", table{"x-queue-type": "quorum"})
	publish(t, owner, "", "orders", "", 3)
	_, err := owner.QueueDeclare("mine", false, false, true, false, nil)
	check(t, err)
	names := []string{"orders", "mine", "missing"}

	write := "^curfew\\.tap\\."
	if family() == cluster.Family43 { // where asking for a queue needs some permission
		write = "^(curfew\\.tap\\..*|orders|mine|missing)$"
	}
	plain := n.user(t, url, "plain", "", "^curfew\\.tap\\.", write, "^(orders|curfew\\.tap\\..*)$")
	for _, c := range []*cluster.Cluster{open(t, n, plain), mustOpen(t, cluster.Options{URL: plain})} {
		var i *cluster.Inventory
		eventually(t, answerLimit, "the messages", func() bool {
			i, err = c.Inventory(t.Context(), names, "")
			check(t, err)
			return i.Queue("orders") != nil && i.Queue("orders").Ready == 3
		})
		require.Len(t, i.Queues, 2)
		require.True(t, i.Queue("mine").Exclusive)
		require.NotEmpty(t, i.Notes)
		require.Contains(t, i.Notes[0], "only queues that rules name exactly are known")
		d := cluster.Decide(i.Queue("orders"), keepAll(t)[0], i.Server, cluster.TTLStats{}, true)
		require.Equal(t, cluster.CannotBeKnown, d.Code)
		require.Equal(t, version, i.Server.Version)
	}

	watcher := n.user(t, url, "watcher", "monitoring", "^curfew\\.tap\\.", "^curfew\\.tap\\.", "^(orders|curfew\\.tap\\..*)$")
	eventually(t, answerLimit, "everything to be known", func() bool {
		i, err := open(t, n, watcher).Inventory(t.Context(), nil, "")
		check(t, err)
		require.Empty(t, i.Notes)
		return i.Queue("orders").Type == cluster.Quorum && i.Queue("orders").Unknown == 0
	})
}

func mustOpen(t testing.TB, o cluster.Options) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Open(o)
	check(t, err)
	return c
}

// TestEvents: events about consumers and queues that come and go arrive at once, also where the exchange is in another virtual host.
func TestEvents(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	vhost, url := n.vhost(t)
	c := mustOpen(t, cluster.Options{URL: url, Name: t.Name()}) // its connections can be distinguished from those of other tests
	ctx, cancel := context.WithCancel(t.Context())
	events, ended := make(chan cluster.Event, 100), make(chan error, 1)
	go func() { ended <- c.Events(ctx, func(e cluster.Event) { events <- e }) }()
	next := func() cluster.Event {
		t.Helper()
		select {
		case e := <-events:
			return e
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(answerLimit):
			t.Fatal("no event")
		}
		panic("unreachable")
	}
	require.Equal(t, cluster.Changed, next().Kind)

	ch := openChannel(t, dial(t, url))
	declare(t, ch, "orders", nil)
	require.Equal(t, "changed orders ", describe(next()))
	check(t, ch.QueueBind("orders", "key", "amq.direct", false, nil))
	require.Equal(t, "binding changed orders ", describe(next()))
	began := time.Now()
	_, err := ch.Consume("orders", "app", false, false, false, false, nil)
	check(t, err)
	require.Equal(t, "consumer created orders app", describe(next()))
	t.Logf("a new consumer was told %v after it asked", time.Since(began))
	check(t, ch.Cancel("app", false))
	n.api(t, http.MethodPut, "policies/"+vhost+"/ttl", map[string]any{"pattern": "^x", "definition": map[string]any{"message-ttl": 10}, "apply-to": "queues"}, nil)
	require.Equal(t, "changed  ", describe(next()))
	_, err = ch.QueueDelete("orders", false, false, false)
	check(t, err)
	eventually(t, answerLimit, "the deletion", func() bool { return describe(next()) == "queue deleted orders " })

	// The connection is cut, and comes back by itself.
	var connections []struct {
		Name       string
		Properties struct {
			Name string `json:"connection_name"`
		} `json:"client_properties"`
	}
	eventually(t, answerLimit, "the connection in RabbitMQ's list", func() bool {
		n.api(t, http.MethodGet, "connections", nil, &connections)
		for _, one := range connections {
			if one.Properties.Name == t.Name()+": events" {
				n.api(t, http.MethodDelete, "connections/"+strings.ReplaceAll(one.Name, " ", "%20"), nil, nil)
				return true
			}
		}
		return false
	})
	require.Equal(t, cluster.Changed, next().Kind)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func describe(e cluster.Event) string {
	return eventKinds[e.Kind] + " " + e.Queue + " " + e.ConsumerTag
}

var eventKinds = []string{"changed", "consumer created", "queue deleted", "binding changed"}

// TestNoEvents: a user who may not read the events gets an error that says so, and polls.
func TestNoEvents(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	_, url := n.vhost(t)
	c := open(t, n, n.user(t, url, "deaf", "", "^curfew\\.tap\\.", "^curfew\\.tap\\.", "^curfew\\.tap\\."))
	err := c.Events(t.Context(), func(cluster.Event) { t.Error("an event") })
	require.ErrorIs(t, err, cluster.ErrNoEvents)
	require.ErrorContains(t, err, "virtual host TestNoEvents: ")
	require.ErrorContains(t, err, "virtual host /: the user may not enter it")
}

// TestFailover: when a node is gone, the next one is used; when all are gone, connecting waits until one is back.
func TestFailover(t *testing.T) {
	t.Parallel()
	nodes := threeNodes(t)
	first, second := nodes[0], nodes[1]
	c := mustOpen(t, cluster.Options{URL: first.url + "," + second.url})
	conn, err := c.Connect(t.Context(), "test", false)
	check(t, err)
	require.Equal(t, first.addr, conn.RemoteAddr().String())
	lost := conn.NotifyClose(make(chan *amqp091.Error, 1))

	first.kill()
	<-lost
	began := time.Now()
	conn, err = c.Connect(t.Context(), "test", false)
	check(t, err)
	t.Logf("connected to the next node %v after the first was lost", time.Since(began))
	require.Equal(t, second.addr, conn.RemoteAddr().String())
	check(t, conn.Close())
	conn, err = c.ConnectOnce(t.Context(), "test")
	check(t, err)
	require.Equal(t, second.addr, conn.RemoteAddr().String(), "the node that was reached last is tried first")
	check(t, conn.Close())

	alone := mustOpen(t, cluster.Options{URL: first.url})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = alone.Connect(ctx, "test", false)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, first.addr)
	require.NotContains(t, err.Error(), "guest:guest")

	connected := make(chan error, 1)
	go func() {
		conn, err := alone.Connect(t.Context(), "test", false)
		if err == nil {
			err = conn.Close()
		}
		connected <- err
	}()
	check(t, first.start())
	select {
	case err := <-connected:
		check(t, err)
	case <-time.After(answerLimit):
		t.Fatal("not connected")
	}
}
