package broker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// drifter is a channel that takes what it is given, and whose locks may lapse.
type drifter struct {
	mu     sync.Mutex
	c      broker.Consumer
	active *activeCheck
	held   map[queue.Seq]string
	order  []queue.Seq
}

// activeCheck notes deliveries to a consumer that was not the active one.
type activeCheck struct {
	mu    sync.Mutex
	wrong int
}

func (k *drifter) Pull(c *broker.Consumer, src *broker.Source, most int) (taken int, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.Status() == broker.Waiting {
		k.active.mu.Lock()
		k.active.wrong++
		k.active.mu.Unlock()
	}
	var d broker.Delivery
	for taken < most && len(k.order) < 3 && src.Next(&d) {
		k.held[d.Seq] = string(d.Message.Body)
		k.order = append(k.order, d.Seq)
		taken++
	}
	return taken, len(k.order) < 3
}

func (k *drifter) Cancelled(*broker.Consumer) {}

func (k *drifter) Lapsed(_ uint64, seq queue.Seq) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.Index(k.order, seq)
	if i >= 0 {
		k.order = slices.Delete(k.order, i, i+1)
	}
	return i >= 0
}

// take strikes up to most messages off the line.
func (k *drifter) take(most int) (seqs []queue.Seq, bodies []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := min(most, len(k.order))
	for _, seq := range k.order[:n] {
		seqs, bodies = append(seqs, seq), append(bodies, k.held[seq])
	}
	k.order = slices.Delete(k.order, 0, n)
	return seqs, bodies
}

// TestConsumersComeAndGo: consumers of every priority start, settle, are cancelled and
// leave what they hold, all at once: each message is acked once, none is left behind,
// and only the active consumer is given any.
func TestConsumersComeAndGo(t *testing.T) {
	for name, args := range map[string]amqp.Table{
		"classic":               {},
		"classic single active": {"x-single-active-consumer": true},
		"quorum single active":  {"x-single-active-consumer": true, "x-queue-type": "quorum", "x-delivery-limit": int32(-1)},
		"locks":                 {"x-single-active-consumer": true, "x-lock-duration": int32(1)},
		"quorum locks":          {"x-queue-type": "quorum", "x-lock-duration": int32(1), "x-delivery-limit": int32(-1)},
	} {
		t.Run(name, func(t *testing.T) { comeAndGo(t, args) })
	}
}

func comeAndGo(t *testing.T, args amqp.Table) {
	const messages, clients = 1000, 4
	x := newTestBroker(t, broker.Options{})
	q := x.durable("q", args)
	var mu sync.Mutex
	acked, left := map[string]int{}, messages
	var active activeCheck
	client := func(rng *rand.Rand) {
		k := &drifter{held: map[queue.Seq]string{}, active: &active}
		k.c.Sink, k.c.Args = k, amqp.Table{"x-priority": int32(rng.IntN(3))}
		if !assert.NoError(t, q.Messages.Consume(&k.c)) {
			return
		}
		k.c.Wake()
		for range rng.IntN(20) {
			seqs, bodies := k.take(1 + rng.IntN(3))
			if rng.IntN(4) == 0 {
				q.Messages.Settle(broker.Requeue, seqs, &k.c)
				continue
			}
			q.Messages.Settle(broker.Ack, seqs, &k.c)
			mu.Lock()
			for _, body := range bodies {
				acked[body]++
				left--
			}
			mu.Unlock()
		}
		if rng.IntN(2) == 0 {
			k.c.Cancel()
			seqs, _ := k.take(3)
			q.Messages.Settle(broker.Requeue, seqs, &k.c)
			return
		}
		seqs, _ := k.take(3)
		q.Messages.Settle(broker.Requeue, seqs, &k.c)
		k.c.Cancel()
		seqs, _ = k.take(3) // it was given more before it went
		q.Messages.Settle(broker.Requeue, seqs, &k.c)
	}
	var all sync.WaitGroup
	all.Go(func() { x.publishAll("q", messages) })
	for i := range clients {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			for {
				mu.Lock()
				done := left <= 0
				mu.Unlock()
				if done {
					return
				}
				client(rng)
			}
		})
	}
	all.Wait()
	for i := range messages {
		require.Equal(t, 1, acked[fmt.Sprint(i)], i)
	}
	ready, unacked, consumers := q.Messages.Counts()
	assert.Zero(t, ready+unacked+consumers)
	assert.Zero(t, active.wrong)
}
