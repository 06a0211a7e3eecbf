package broker_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/definitions"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// shape is all that must outlive a restart, a line each. What is transient has a name
// that begins with t.
func shape(b *broker.Broker) (lines []string) {
	d := definitions.Export(b, definitions.Version{})
	note := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, x := range d.VHosts {
		vh, _ := b.VHost(x.Name)
		note("vhost %+v %v", x, vh.Limits())
		for _, q := range vh.Queues.List() {
			if q.Name[0] != 't' {
				note("incarnation %s/%s %d", vh.Name(), q.Name, q.ID)
			}
		}
	}
	for _, x := range d.Users {
		note("user %+v", x)
	}
	for _, x := range d.Permissions {
		note("permission %+v", x)
	}
	for _, x := range d.TopicPermissions {
		note("topic permission %+v", x)
	}
	for _, x := range d.Parameters {
		note("parameter %+v", x)
	}
	for _, x := range d.GlobalParameters {
		note("global %+v", x)
	}
	for _, x := range d.Policies {
		note("policy %+v", x)
	}
	for _, x := range d.Exchanges {
		if x.Durable {
			note("exchange %+v", x)
		}
	}
	for _, x := range d.Queues {
		if x.Durable {
			note("queue %+v", x)
		}
	}
	for _, x := range d.Bindings {
		if x.Source[0] != 't' && x.Destination[0] != 't' {
			note("binding %+v", x)
		}
	}
	slices.Sort(lines)
	return lines
}

// died is what starts where a broker, that holds no messages, might have died. It is made
// before.
type died struct {
	t *testing.T
	o broker.Options
}

func newDied(t *testing.T) *died {
	d := &died{t, broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}}
	require.NoError(t, openTestBroker(t, d.o).b.Close())
	return d
}

// shape is what a start finds had the broker died now whose options these are.
func (d *died) shape(of broker.Options) []string {
	saved, err := os.ReadFile(filepath.Join(of.Store.Dir, "definitions"))
	require.NoError(d.t, err)
	require.NoError(d.t, os.WriteFile(filepath.Join(d.o.Store.Dir, "definitions"), saved, 0o600))
	b, err := broker.New(d.o)
	require.NoError(d.t, err)
	defer func() { require.NoError(d.t, b.Close()) }()
	return shape(b)
}

// meddler changes definitions at random, few of them, so that names come again.
type meddler struct {
	b   *broker.Broker
	rng *rand.Rand
}

func (m *meddler) pick(of ...string) string { return of[m.rng.IntN(len(of))] }

func (m *meddler) end() string { return m.pick("a", "b", "c", "t") }

func (m *meddler) args() amqp.Table {
	return []amqp.Table{nil, {"x": int32(1)}, {"x": int64(1)}, {"x": "1", "y": true}}[m.rng.IntN(4)]
}

func (m *meddler) step() {
	vh, ok := m.b.VHost(m.pick("/", "v", "w"))
	if !ok || m.rng.IntN(20) == 0 {
		m.vhost()
		return
	}
	switch m.rng.IntN(10) {
	case 0, 1, 2:
		m.queue(vh)
	case 3:
		m.exchange(vh)
	case 4, 5, 6:
		m.bind(vh)
	case 7:
		m.policy(vh)
	default:
		m.account(vh.Name())
	}
}

func (m *meddler) vhost() {
	name := m.pick("v", "w")
	if m.rng.IntN(3) == 0 {
		_ = m.b.DeleteVHost(name)
		return
	}
	vh, _, err := m.b.PutVHost("", name, broker.VHostMetadata{Description: m.pick("one", "two"), Tags: []string{"x"}})
	if err == nil && m.rng.IntN(2) == 0 {
		_ = vh.SetLimits(access.Limits{"max-queues": 100 + m.rng.IntN(3)})
	}
}

func (m *meddler) queue(vh *broker.VHost) {
	name := m.end()
	switch m.rng.IntN(3) {
	case 0:
		_, _ = vh.Queues.Delete(nil, name, broker.QueueDeletion{})
	case 1:
		_, _ = vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: name != "t"})
	default:
		_, _ = vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: name != "t", Args: amqp.Table{
			"x-message-ttl": int32(1000), "x-dead-letter-queue": m.rng.IntN(2) == 0,
		}})
	}
}

func (m *meddler) exchange(vh *broker.VHost) {
	name := m.end()
	if m.rng.IntN(3) == 0 {
		_ = vh.Exchanges.Delete(name, m.rng.IntN(2) == 0)
		return
	}
	_ = vh.Exchanges.Declare(name, broker.ExchangeDeclare{
		Kind: m.pick("direct", "fanout", "topic", "headers"), Durable: name != "t", AutoDelete: m.rng.IntN(2) == 0,
	})
}

func (m *meddler) bind(vh *broker.VHost) {
	b := broker.Binding{
		Source: m.pick("a", "b", "t", "amq.topic", "amq.headers"), Destination: m.end(), ToExchange: m.rng.IntN(3) == 0,
		RoutingKey: m.pick("", "k", "l"), Args: m.args(),
	}
	if m.rng.IntN(3) == 0 {
		_ = vh.Unbind(nil, b)
	} else {
		_ = vh.Bind(nil, b)
	}
}

func (m *meddler) policy(vh *broker.VHost) {
	kind, name := policy.Kind(m.rng.IntN(2)), m.pick("p", "q")
	switch m.rng.IntN(5) {
	case 0:
		_, _ = vh.Policies.Clear(kind, name)
	case 1:
		_, _ = m.b.SetGlobalParameter(name, map[string]any{"n": int64(m.rng.IntN(9))})
	case 2:
		_, _ = m.b.ClearGlobalParameter(name)
	default:
		_, _ = vh.Policies.Set(kind, policy.Policy{Name: name, Pattern: "^" + m.end(), ApplyTo: policy.Queues, Priority: m.rng.Int64N(3), Definition: policy.Definition{"max-length": int64(5)}})
	}
}

func (m *meddler) account(vhost string) {
	user := m.pick("guest", "u")
	switch m.rng.IntN(7) {
	case 0:
		_ = m.b.Accounts.DeleteUser("u")
	case 1:
		_ = m.b.Accounts.PutUser(access.User{Name: "u", Tags: []string{m.pick("monitoring", "management")}})
	case 2:
		_ = m.b.Accounts.SetPermission(access.Permission{User: user, VHost: vhost, Configure: m.end(), Write: ".*", Read: ".*"})
	case 3:
		_ = m.b.Accounts.ClearPermission(user, vhost)
	case 4, 5:
		_ = m.b.Accounts.SetTopicPermission(access.TopicPermission{User: user, VHost: vhost, Exchange: m.pick("a", "b"), Write: m.end(), Read: ".*"})
	default:
		_ = m.b.Accounts.ClearTopicPermissions(user, vhost, m.pick("", "a"))
	}
}

// Whatever was changed, and in whatever order, a start finds it as it stood.
func TestDefinitionsAreFoundAsTheyStood(t *testing.T) {
	died := newDied(t)
	for seed := range uint64(4) {
		o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
		x := openTestBroker(t, o)
		m := &meddler{x.b, rand.New(rand.NewPCG(seed, 5))}
		for range 5 {
			for range 40 {
				m.step()
			}
			require.Equal(t, shape(x.b), died.shape(o), "seed %d", seed)
		}
		before := shape(x.b)
		x = restarted(t, o, x.b)
		require.Equal(t, before, shape(x.b), "seed %d", seed)
		require.NoError(t, x.b.Close())
	}
}

func TestDefinitionsOfManyAtOnceAreFoundAsTheyStood(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	x, died := openTestBroker(t, o), newDied(t)
	for round := range uint64(5) {
		var all sync.WaitGroup
		for i := range uint64(6) {
			all.Go(func() {
				m := &meddler{x.b, rand.New(rand.NewPCG(round, i))}
				for range 60 {
					m.step()
				}
			})
		}
		all.Wait()
		require.Equal(t, shape(x.b), died.shape(o), "round %d", round)
	}
	require.NoError(t, x.b.Close())
}
