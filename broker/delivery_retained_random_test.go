package broker_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// retaining is a queue that dead-letters at least once, to a small queue and to one that
// comes and goes, under policies that change.
type retaining struct {
	*testBroker
	o         broker.Options
	rng       *rand.Rand
	sent      int
	accepted  []string
	acked     map[string]int
	arrived   map[string]int // in small
	at        map[string]int // by body and incarnation
	restarted bool
}

// TestRetainedDeadLettersArriveOnce: whatever happens, what was taken is acked or arrives;
// once, unless there was a restart.
func TestRetainedDeadLettersArriveOnce(t *testing.T) {
	for seed := range uint64(32) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newRetaining(t, seed)
				defer func() { require.NoError(t, x.b.Close()) }()
				for range 150 {
					x.step()
				}
				x.finish()
			})
		})
	}
}

func newRetaining(t *testing.T, seed uint64) *retaining {
	x := &retaining{rng: rand.New(rand.NewPCG(seed, 1)), acked: map[string]int{}, arrived: map[string]int{}, at: map[string]int{}}
	if seed%16 == 1 {
		x.o.Store = store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 16}
	}
	x.testBroker = openTestBroker(t, x.o)
	require.NoError(t, x.vh.Exchanges.Declare("dead", broker.ExchangeDeclare{Kind: "fanout", Durable: true}))
	x.quorum("q", amqp.Table{"x-max-length": int32(30)})
	x.target("small")
	x.target("fleeting")
	x.leadTo("dead")
	return x
}

func (x *retaining) target(name string) {
	x.durable(name, amqp.Table{"x-max-length": int32(2), "x-overflow": "reject-publish"})
	require.NoError(x.t, x.vh.Bind(nil, broker.Binding{Source: "dead", Destination: name}))
}

func (x *retaining) leadTo(dlx string) {
	x.govern(policy.Definition{"dead-letter-exchange": dlx, "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"})
}

func (x *retaining) the(name string) *broker.Queue {
	q, err := x.vh.Queues.Get(name)
	if err != nil {
		return nil
	}
	return q
}

func (x *retaining) step() {
	switch x.rng.IntN(13) {
	case 0, 1, 2:
		x.send()
	case 3, 4:
		x.settle(broker.Reject)
	case 5:
		x.settle(broker.Ack)
	case 6:
		x.settle(broker.Requeue)
	case 7:
		x.expireSome()
	case 8:
		x.collect(x.rng.IntN(2))
	case 9:
		x.comeAndGo()
	case 10:
		x.leadTo([]string{"dead", "missing"}[x.rng.IntN(2)])
	case 11:
		time.Sleep(time.Duration(x.rng.IntN(3000)) * time.Millisecond)
		synctest.Wait()
	case 12:
		x.restart()
	}
}

// send publishes one message, with a time to live or without.
func (x *retaining) send() {
	body := fmt.Sprint(x.sent)
	x.sent++
	p := amqp.Properties{DeliveryMode: 2}
	if x.rng.IntN(2) == 0 {
		p.Expiration = fmt.Sprint(x.rng.IntN(2000))
	}
	_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil), Body: []byte(body)})
	require.NoError(x.t, err)
	if len(x.p.Flush(nil)) == 0 {
		x.accepted = append(x.accepted, body)
	}
}

func (x *retaining) settle(how broker.Settlement) {
	q := x.the("q")
	for range 1 + x.rng.IntN(3) {
		m, ok := x.get(q, false)
		if !ok {
			return
		}
		q.Messages.Settle(how, []queue.Seq{m.seq}, nil)
		if how == broker.Ack {
			x.acked[m.body]++
		}
	}
}

// expireSome names what has a deadline, due or not, and makes one come now.
func (x *retaining) expireSome() {
	refs := x.deadlines()
	x.expire(refs)
	if len(refs) > 0 {
		x.b.FireNow(refs[0], false)
	}
}

// collect takes all out of a target.
func (x *retaining) collect(which int) {
	if q := x.the([]string{"small", "fleeting"}[which]); q != nil {
		for _, body := range x.drain(q) {
			if which == 0 {
				x.arrived[body]++
			}
			x.at[fmt.Sprint(body, " in ", q.ID)]++
		}
	}
}

// comeAndGo deletes the fleeting queue, or makes it again.
func (x *retaining) comeAndGo() {
	if x.the("fleeting") == nil {
		x.target("fleeting")
		return
	}
	x.collect(1)
	_, err := x.vh.Queues.Delete(nil, "fleeting", broker.QueueDeletion{})
	require.NoError(x.t, err)
}

func (x *retaining) restart() {
	if x.o.Store.Dir != "" && x.rng.IntN(3) == 0 {
		x.restarted = true
		x.testBroker = restarted(x.t, x.o, x.b)
	}
}

func (x *retaining) finish() {
	x.leadTo("dead")
	synctest.Wait()
	for range 2 * len(x.accepted) {
		if q := x.the("q"); q.Messages.Retained.Count()+x.testBroker.ready(q) == 0 {
			break
		}
		x.settle(broker.Reject)
		x.expireSome()
		x.collect(0)
		x.collect(1)
		time.Sleep(5 * time.Second)
		synctest.Wait()
	}
	x.collect(0)
	x.collect(1)
	q := x.the("q")
	require.Zero(x.t, q.Messages.Retained.Count())
	require.Zero(x.t, x.testBroker.ready(q))
	for _, body := range x.accepted {
		ends := x.acked[body] + x.arrived[body]
		if x.restarted {
			assert.Positive(x.t, ends, body)
			continue
		}
		assert.Equal(x.t, 1, ends, body)
	}
	for body, n := range x.at {
		assert.True(x.t, n == 1 || x.restarted, "%s: %d times", body, n)
	}
}
