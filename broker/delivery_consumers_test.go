package broker_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// taker is a client that holds up to prefetch messages.
type taker struct {
	mu        sync.Mutex // a queue's alarm may come at any time
	c         broker.Consumer
	prefetch  int
	held      []queue.Seq
	got       []string
	silent    bool // keeps no bodies
	total     int
	cancelled bool
}

func (k *taker) Pull(_ *broker.Consumer, src *broker.Source, most int) (taken int, more bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for ; taken < most && len(k.held) < k.prefetch; taken++ {
		var d broker.Delivery
		if !src.Next(&d) {
			return taken, true
		}
		k.held = append(k.held, d.Seq)
		k.total++
		if !k.silent {
			k.got = append(k.got, string(d.Message.Body))
		}
	}
	return taken, len(k.held) < k.prefetch
}

func (k *taker) Cancelled(*broker.Consumer) { k.cancelled = true }

// bodies are those of all that k was given.
func (k *taker) bodies() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.got)
}

// take has k forget what it holds.
func (k *taker) take() []queue.Seq {
	k.mu.Lock()
	defer k.mu.Unlock()
	held := k.held
	k.held = nil
	return held
}

// settle ends all that k holds.
func (k *taker) settle(how broker.Settlement) {
	held := k.take()
	k.c.Queue().Settle(how, held, &k.c)
}

// consume starts a consumer with arguments.
func (x *testBroker) consume(q *broker.Queue, prefetch int, args amqp.Table) *taker {
	k := &taker{prefetch: prefetch}
	k.c.Sink, k.c.Args = k, args
	require.NoError(x.t, q.Messages.Consume(&k.c))
	k.c.Wake()
	return k
}

func (x *testBroker) publishAll(q string, n int) {
	for i := range n {
		x.publish("", q, fmt.Sprint(i), "", nil)
	}
}

func TestHigherPriorityConsumersAreServedFirst(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", nil)
	low := x.consume(q, 10, nil)
	high := []*taker{x.consume(q, 2, amqp.Table{"x-priority": int8(5)}), x.consume(q, 2, amqp.Table{"x-priority": int64(5)})}
	lowest := x.consume(q, 10, amqp.Table{"x-priority": int32(-1)})
	x.publishAll("q", 8)
	assert.Equal(t, []string{"0", "2"}, high[0].got, "equals take turns")
	assert.Equal(t, []string{"1", "3"}, high[1].got)
	assert.Equal(t, []string{"4", "5", "6", "7"}, low.got, "the next rank while the first has no credit")
	assert.Empty(t, lowest.got)

	high[1].settle(broker.Ack)
	x.publishAll("q", 1)
	assert.Len(t, high[1].got, 3, "the first rank again as soon as it has credit")
	high[0].c.Cancel()
	high[1].c.Cancel()
	low.c.Cancel()
	x.publishAll("q", 1)
	assert.Equal(t, []string{"0"}, lowest.got)
}

func TestConsumePriorityMustBeANumber(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", nil)
	err := q.Messages.Consume(&broker.Consumer{Args: amqp.Table{"x-priority": "high"}})
	assert.Equal(t, uint16(amqp.PreconditionFailed), code(err))
	assert.Equal(t, `PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/': "expected integer, got longstr"`, text(err))
}

var singleActive = amqp.Table{"x-single-active-consumer": true}

func statuses(takers ...*taker) (all []broker.Status) {
	for _, k := range takers {
		all = append(all, k.c.Status())
	}
	return all
}

func TestSingleActiveConsumerOfAClassicQueue(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", singleActive)
	first, second := x.consume(q, 2, nil), x.consume(q, 2, nil)
	third := x.consume(q, 2, amqp.Table{"x-priority": int32(9)})
	x.publishAll("q", 6)
	assert.Equal(t, []string{"0", "1"}, first.got)
	assert.Empty(t, append(second.got, third.got...), "none but the active one, though it has no credit")
	assert.Equal(t, []broker.Status{broker.SingleActive, broker.Waiting, broker.Waiting}, statuses(first, second, third))

	first.settle(broker.Ack)
	assert.Equal(t, []string{"0", "1", "2", "3"}, first.got, "a higher priority does not take over")
	second.c.Cancel()
	assert.Empty(t, third.got, "who leaves was not active")
	second = x.consume(q, 2, nil)

	first.c.Cancel()
	assert.Equal(t, []string{"4", "5"}, third.got, "the highest priority is next, at once")
	third.c.Cancel()
	first.settle(broker.Requeue)
	assert.Equal(t, []string{"2", "3"}, second.got)
	second.c.Cancel()
	second.settle(broker.Ack)
	assert.Empty(t, q.Info().ActiveConsumer, "nobody is left")
}

func TestSingleActiveConsumerOfAQuorumQueue(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.quorum("q", amqp.Table{"x-single-active-consumer": true})
	low := x.consume(q, 3, nil)
	x.publishAll("q", 2)
	high := x.consume(q, 3, amqp.Table{"x-priority": int32(1)})
	x.publishAll("q", 1)
	assert.Equal(t, []string{"0", "1"}, low.got, "it fades: it is given nothing more")
	assert.Empty(t, high.got, "before the active one has settled what it holds")

	low.settle(broker.Ack)
	assert.Equal(t, []string{"0"}, high.got)
	assert.Equal(t, []broker.Status{broker.Waiting, broker.SingleActive}, statuses(low, high))
	high.c.Cancel()
	x.publishAll("q", 1)
	assert.Equal(t, []string{"0", "1", "0"}, low.got)
	_, err := q.Messages.Get(false, nil)
	assert.Equal(t, "RESOURCE_LOCKED - cannot obtain access to locked queue 'q' in vhost '/'. basic.get operations are not supported by quorum queues with single active consumer", text(err))
}

func TestExclusiveConsumers(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	refused := "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"
	q := x.queue("q", nil)
	owner := &broker.Consumer{Exclusive: true, Sink: &taker{}}
	require.NoError(t, q.Messages.Consume(owner))
	assert.Equal(t, refused, text(q.Messages.Consume(&broker.Consumer{})))
	x.publishAll("q", 1)
	_, ok := x.get(q, true)
	assert.True(t, ok, "an exclusive consumer leaves basic.get alone")
	owner.Cancel()
	other := x.consume(q, 1, nil)
	assert.Equal(t, refused, text(q.Messages.Consume(&broker.Consumer{Exclusive: true})))
	other.c.Cancel()
	assert.NoError(t, q.Messages.Consume(owner))

	q = x.quorum("quorum", amqp.Table{})
	require.NoError(t, q.Messages.Consume(&broker.Consumer{Exclusive: true, Sink: &taker{}}))
	assert.NoError(t, q.Messages.Consume(&broker.Consumer{Exclusive: true, Sink: &taker{}}), "of no meaning on a quorum queue")
	q, err := x.vh.Queues.Declare(nil, "single", broker.QueueDeclare{Args: singleActive})
	require.NoError(t, err)
	assert.Equal(t, "ACCESS_REFUSED - queue 'single' in vhost '/' in exclusive use", text(q.Messages.Consume(&broker.Consumer{Exclusive: true})))
}
