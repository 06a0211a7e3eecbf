package broker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/definitions"
	"curfew/broker/store"
)

// someDocument has one of each, in a virtual host that is there and in one that is not.
func someDocument(t *testing.T, suffix string) *definitions.Document {
	t.Helper()
	text := `{"users":[{"name":"U","password":"x","tags":"monitoring"}],"vhosts":[{"name":"V"}],
		"permissions":[{"user":"U","vhost":"V","configure":"a","write":"b","read":"c"},{"user":"guest","vhost":"V","configure":"","write":".*","read":".*"}],
		"topic_permissions":[{"user":"U","vhost":"/","exchange":"X","write":"a","read":"b"}],
		"parameters":[{"vhost":"V","component":"vhost-limits","name":"limits","value":{"max-queues":9}},
			{"vhost":"/","component":"operator_policy","name":"O","value":{"pattern":".*","definition":{"max-length":9}}}],
		"global_parameters":[{"name":"G","value":1}],"policies":[{"vhost":"V","name":"P","pattern":".*","definition":{"max-length":9}}],
		"exchanges":[{"name":"X","vhost":"/","type":"topic","durable":true},{"name":"X","vhost":"V","type":"fanout","durable":true},{"name":"tx","vhost":"V","type":"fanout"}],
		"queues":[{"name":"Q","vhost":"/","durable":true,"arguments":{"x-dead-letter-queue":true}},{"name":"Q","vhost":"V","durable":true},{"name":"tq","vhost":"V"}],
		"bindings":[{"source":"X","vhost":"/","destination":"Q","destination_type":"queue","routing_key":"k"},
			{"source":"X","vhost":"V","destination":"Q","destination_type":"queue","routing_key":"k"},
			{"source":"tx","vhost":"V","destination":"tq","destination_type":"queue"},{"source":"X","vhost":"V","destination":"tq","destination_type":"queue"}]}`
	for _, name := range []string{"U", "V", "X", "Q", "G", "P", "O", "tx", "tq"} {
		text = strings.ReplaceAll(text, `"`+name+`"`, `"`+name+suffix+`"`)
	}
	d, err := definitions.Parse([]byte(text))
	require.NoError(t, err)
	return d
}

func exported(t *testing.T, b *broker.Broker) string {
	t.Helper()
	text, err := definitions.Export(b, definitions.Version{}).Marshal()
	require.NoError(t, err)
	return string(text)
}

// TestImportAndAnExclusiveQueue: the bindings of a queue of a connection stay, and keep nobody from an import.
func TestImportAndAnExclusiveQueue(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	_, err := x.vh.Queues.Declare(t, "mine", broker.QueueDeclare{Exclusive: true})
	require.NoError(t, err)
	require.NoError(t, x.vh.Bind(t, broker.Binding{Source: "amq.direct", Destination: "mine", RoutingKey: "k"}))
	_, err = definitions.Import(t.Context(), x.b, someDocument(t, ""), definitions.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"mine"}, x.vh.Destinations("amq.direct", "k"))
}

// TestImportThatCannotBeSaved: nothing of it is there, before a crash and after.
func TestImportThatCannotBeSaved(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	x := openTestBroker(t, o)
	died := newDied(t)
	x.durable("there", nil)
	free := x.fillDefinitions(o.Store.Dir)
	before, saved := exported(t, x.b), shape(x.b)
	_, err := definitions.Import(t.Context(), x.b, someDocument(t, ""), definitions.Options{})
	require.ErrorIs(t, err, broker.ErrNotSaved)
	require.Equal(t, before, exported(t, x.b))
	require.Equal(t, saved, died.shape(o))
	free()
	_, err = definitions.Import(t.Context(), x.b, someDocument(t, ""), definitions.Options{})
	require.NoError(t, err)
	require.Equal(t, shape(x.b), died.shape(o))
	vh, ok := x.b.VHost("V")
	require.True(t, ok)
	q, err := vh.Queues.Get("Q")
	require.NoError(t, err)
	policy, operator, _ := q.Policies()
	assert.Equal(t, []string{"P", ""}, []string{policy, operator})
	for _, of := range []struct{ exchange, queue string }{{"X", "Q"}, {"tx", "tq"}} {
		p := vh.NewPublisher("guest")
		m := amqp.Properties{DeliveryMode: 2}
		routed, err := p.Add(&broker.Publication{Exchange: []byte(of.exchange), RoutingKey: []byte("k"), Properties: m.Append(nil)})
		require.NoError(t, err)
		assert.True(t, routed)
		p.Flush(nil)
	}
	_, err = x.vh.Queues.Get("Q/$deadletterqueue")
	require.NoError(t, err)
	again, err := definitions.Import(t.Context(), x.b, someDocument(t, ""), definitions.Options{})
	require.NoError(t, err)
	assert.Empty(t, again)
	require.NoError(t, x.b.Close())
}

// TestImportThatFailsLate: whatever is found wrong, and wherever, nothing is taken.
func TestImportThatFailsLate(t *testing.T) {
	o := broker.Options{Ceilings: broker.Ceilings{Queues: 5, Exchanges: 5, Bindings: 5}}
	x := newTestBroker(t, o)
	before := exported(t, x.b)
	for want, spoil := range map[string]func(*definitions.Document){
		"queue limit in vhost '/' (5) is reached": func(d *definitions.Document) {
			for i := range 4 {
				d.Queues = append(d.Queues, definitions.Queue{Name: fmt.Sprint("more", i), VHost: "/"})
			}
		},
		"exchange limit in vhost '/' (5) is reached": func(d *definitions.Document) {
			for i := range 5 {
				d.Exchanges = append(d.Exchanges, definitions.Exchange{Name: fmt.Sprint("more", i), VHost: "/", Type: "fanout"})
			}
		},
		"binding limit (5) is reached": func(d *definitions.Document) {
			for i := range 5 {
				d.Bindings = append(d.Bindings, definitions.Binding{Source: "X", VHost: "/", Destination: "Q", DestinationType: "queue", RoutingKey: fmt.Sprint(i)})
			}
		},
		"neither queue nor exchange": func(d *definitions.Document) {
			d.Bindings = append(d.Bindings, definitions.Binding{Source: "X", VHost: "/", Destination: "Q", DestinationType: "?"})
		},
	} {
		d := someDocument(t, "")
		spoil(d)
		_, err := definitions.Import(t.Context(), x.b, d, definitions.Options{})
		require.ErrorContains(t, err, want)
		require.Equal(t, before, exported(t, x.b))
	}
	_, err := definitions.Import(t.Context(), x.b, someDocument(t, ""), definitions.Options{})
	require.NoError(t, err)
}

// TestImportUnderHigherCeilings: what the configuration allows can be imported beside.
func TestImportUnderHigherCeilings(t *testing.T) {
	const most = 10_050 // above the default
	x := newTestBroker(t, broker.Options{Ceilings: broker.Ceilings{Exchanges: most}})
	d := &definitions.Document{}
	for i := range most {
		d.Exchanges = append(d.Exchanges, definitions.Exchange{Name: fmt.Sprint(i), VHost: "/", Type: "fanout"})
	}
	for range 2 {
		_, err := definitions.Import(t.Context(), x.b, d, definitions.Options{})
		require.NoError(t, err)
	}
	d.Exchanges = append(d.Exchanges, definitions.Exchange{Name: "one more", VHost: "/", Type: "fanout"})
	_, err := definitions.Import(t.Context(), x.b, d, definitions.Options{})
	require.ErrorContains(t, err, "exchange limit")
}

// TestImportsAmongOthers: what all have made and deleted at the same time is there as it
// is saved.
func TestImportsAmongOthers(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	x, died := openTestBroker(t, o), newDied(t)
	for round := range uint64(3) {
		var all sync.WaitGroup
		for i := range uint64(4) {
			all.Go(func() {
				m := &meddler{x.b, rand.New(rand.NewPCG(round, i))}
				for range 60 {
					m.step()
				}
			})
		}
		all.Go(func() {
			rng := rand.New(rand.NewPCG(round, 99))
			for i := range 10 {
				d := someDocument(t, fmt.Sprint(i))
				for _, name := range []string{"a", "b", "c"} { // which the others make and delete
					d.Queues = append(d.Queues, definitions.Queue{Name: name, VHost: "/", Durable: true})
					d.Exchanges = append(d.Exchanges, definitions.Exchange{Name: name, VHost: "/", Type: "topic", Durable: true, AutoDelete: true})
					d.Bindings = append(d.Bindings, definitions.Binding{Source: name, VHost: "/", Destination: name, DestinationType: "queue", RoutingKey: fmt.Sprint(rng.IntN(3))})
				}
				_, err := definitions.Import(t.Context(), x.b, d, definitions.Options{})
				assert.NoError(t, err)
				d.Parameters = nil // its limits
				_, err = definitions.Import(t.Context(), x.b, d, definitions.Options{VHost: "v"})
				assert.True(t, err == nil || errors.Is(err, broker.ErrNoVHost), "%v", err)
			}
		})
		all.Wait()
		_, err := x.b.SetGlobalParameter("last", "saved")
		require.NoError(t, err)
		require.Equal(t, shape(x.b), died.shape(o), "round %d", round)
	}
	require.NoError(t, x.b.Close())
}
