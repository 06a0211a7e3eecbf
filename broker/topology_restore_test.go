package broker_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/store"
)

// resave has the definitions on disk say other arguments of a queue.
func resave(t *testing.T, dir string, was, is amqp.Table) {
	s, found, err := store.Open(store.Options{Dir: dir})
	require.NoError(t, err)
	text := func(args amqp.Table) string { return base64.StdEncoding.EncodeToString(amqp.AppendTable(nil, args)) }
	for _, d := range found.Definitions {
		if strings.HasPrefix(d.Key, "queue ") {
			require.Contains(t, string(d.Value), text(was))
			s.Define(store.Definition{Key: d.Key, Value: []byte(strings.ReplaceAll(string(d.Value), text(was), text(is)))})
		}
	}
	require.NoError(t, s.SyncDefinitions())
	require.NoError(t, s.Close())
}

// Versions before queue types took these; no start may fail, and no message be lost,
// because of it.
func TestQueueThatWouldBeRefusedNowIsRestored(t *testing.T) {
	for name, c := range map[string]struct{ was, is amqp.Table }{
		"classic with a delivery limit": {amqp.Table{"x-max-priority": int32(9)}, amqp.Table{"x-max-priority": int32(9), "x-delivery-limit": int32(3)}},
		"quorum with priorities":        {amqp.Table{"x-max-priority": int32(9)}, amqp.Table{"x-max-priority": int32(9), "x-queue-type": "quorum"}},
		"nonsense":                      {amqp.Table{"x-max-length": int32(100)}, amqp.Table{"x-message-ttl": "soon", "x-dead-letter-exchange": int32(1), "x-max-length": int64(-5)}},
	} {
		t.Run(name, func(t *testing.T) {
			o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
			x := openTestBroker(t, o)
			x.durable("q", c.was)
			p := amqp.Properties{DeliveryMode: 2, Priority: 5}
			_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil), Body: []byte("m")})
			require.NoError(t, err)
			x.p.Flush(nil)
			x.commit()
			require.NoError(t, x.b.Close())
			resave(t, o.Store.Dir, c.was, c.is)

			core, logs := observer.New(zap.WarnLevel)
			o.Log = zap.New(core)
			x = openTestBroker(t, o)
			require.Equal(t, 1, logs.FilterMessageSnippet("would be refused now").Len())
			q, err := x.vh.Queues.Get("q")
			require.NoError(t, err)
			x.publishPersistent("", "q", "n", "")
			assert.ElementsMatch(t, []string{"m", "n"}, x.drain(q))
			require.NoError(t, declareAgain(x, "q", c.is), "who declares it as ever goes on")
			require.NoError(t, x.b.Close())
		})
	}
}

// TestSavedSystemExchange: a definition of an exchange that every virtual host has does not keep the broker from starting.
func TestSavedSystemExchange(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	require.NoError(t, x.vh.Exchanges.Declare("mine", broker.ExchangeDeclare{Kind: "topic", Durable: true, Args: amqp.Table{"x-message-ttl": int64(7)}}))
	require.NoError(t, x.b.Close())
	s, found, err := store.Open(o.Store)
	require.NoError(t, err)
	for _, d := range found.Definitions {
		if strings.HasPrefix(d.Key, "exchange ") {
			s.Define(store.Definition{Key: strings.ReplaceAll(d.Key, "mine", "amq.topic"), Value: bytes.ReplaceAll(d.Value, []byte("mine"), []byte("amq.topic"))})
		}
	}
	require.NoError(t, s.SyncDefinitions())
	require.NoError(t, s.Close())

	for _, warnings := range []int{1, 0} {
		core, logs := observer.New(zap.WarnLevel)
		o.Log = zap.New(core)
		x = openTestBroker(t, o)
		assert.Equal(t, warnings, logs.FilterMessageSnippet("every virtual host has").Len())
		for name, args := range map[string]amqp.Table{"amq.topic": nil, "mine": {"x-message-ttl": int64(7)}} {
			i, err := x.vh.Exchanges.Get(name)
			require.NoError(t, err)
			assert.Equal(t, args, i.Args, name)
		}
		require.NoError(t, x.b.Close())
	}
}

// TestConsumedIsRemembered: a durable queue knows after a restart that a client has consumed it, also when its arguments are changed meanwhile. Another
// of its name does not.
func TestConsumedIsRemembered(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	for _, name := range []string{"consumed", "idle", "again"} {
		x.durable(name, nil)
	}
	for _, name := range []string{"consumed", "again"} {
		x.called(name).NoteConsumed()
	}
	require.NoError(t, x.vh.Queues.Change(nil, "consumed", amqp.Table{"x-message-ttl": int64(7)}))
	_, err := x.vh.Queues.Delete(nil, "again", broker.QueueDeletion{})
	require.NoError(t, err)
	x.durable("again", nil)
	for range 2 {
		require.NoError(t, x.b.Close())
		x = openTestBroker(t, o)
		for name, want := range map[string]bool{"consumed": true, "idle": false, "again": false} {
			require.Equal(t, want, x.called(name).Consumed(), name)
		}
	}
	require.NoError(t, x.b.Close())
}
