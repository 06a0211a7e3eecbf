package simulation

import (
	"math/rand/v2"
	"runtime"
	"strconv"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// racer is one client of a race.
type racer struct {
	*race
	id        int
	rng       *rand.Rand
	publisher *broker.Publisher
	held      []int // messages that it has not settled
}

func (r *race) client(id int, seed uint64) *racer {
	return &racer{race: r, id: id, rng: rand.New(rand.NewPCG(seed, uint64(id))), publisher: r.vhost.NewPublisher("guest")}
}

// call makes one call of a random kind.
func (c *racer) call() {
	if chance(c.rng, 0.5) {
		runtime.Gosched()
	}
	switch n := c.rng.IntN(20); {
	case n < 6:
		c.publish()
	case n < 10:
		c.get(chance(c.rng, 0.2))
	case n < 14:
		c.settle()
	case n < 17:
		c.expire()
	case n < 19:
		c.tick()
	default:
		c.purge()
	}
}

// record records a call that began at a stamp and has returned.
func (c *racer) record(began int64, op operation, out answer) {
	returned := c.ticker.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = append(c.history, porcupine.Operation{ClientId: c.id, Input: op, Call: began, Output: out, Return: returned})
}

func (c *racer) publish() {
	message := int(c.published.Add(1)) - 1
	if message >= raceMessages {
		return
	}
	p := amqp.Properties{Priority: uint8(message + 1)}
	ttl := int64(-1)
	if chance(c.rng, 0.8) {
		ttl = 1 + c.rng.Int64N(6)
		p.Expiration = strconv.FormatInt(ttl, 10)
	}
	began := c.ticker.Add(1)
	_, err := c.publisher.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil), Body: []byte(strconv.Itoa(message))})
	require.NoError(c.t, err)
	c.publisher.Flush(nil)
	c.record(began, operation{publishes, message, ttl * 1000}, answer{})
}

// get takes a message. With noAck that also acks it.
func (c *racer) get(noAck bool) bool {
	message, out := -1, answer{}
	began := c.ticker.Add(1)
	got, err := c.queue.Messages.Get(noAck, func(d *broker.Delivery) {
		message, out.returned = messageOf(d), d.Redelivered
	})
	require.NoError(c.t, err)
	switch {
	case !got:
		c.record(began, operation{kind: finds, message: -1}, answer{})
	case noAck:
		c.record(began, operation{kind: takes, message: message}, out)
		c.record(began, operation{kind: acks, message: message}, answer{})
	default:
		c.record(began, operation{kind: takes, message: message}, out)
		c.held = append(c.held, message)
	}
	return got
}

func messageOf(d *broker.Delivery) int {
	message, err := strconv.Atoi(string(d.Message.Body))
	if err != nil {
		panic(err)
	}
	return message
}

// seqOf returns the sequence number of a message, the only one of its priority.
func seqOf(message int) queue.Seq { return queue.Seq(uint64(message+1)<<56 | 1) }

func (c *racer) settle() {
	if len(c.held) == 0 {
		return
	}
	at := c.rng.IntN(len(c.held))
	message := c.held[at]
	c.held = append(c.held[:at], c.held[at+1:]...)
	how := pick(c.rng, []broker.Settlement{broker.Ack, broker.Reject, broker.Requeue})
	began := c.ticker.Add(1)
	c.queue.Messages.Settle(how, []queue.Seq{seqOf(message)}, nil)
	kinds := map[broker.Settlement]kind{broker.Ack: acks, broker.Reject: rejects, broker.Requeue: requeues}
	c.record(began, operation{kind: kinds[how], message: message}, answer{})
}

// expire proposes some messages that the feed has reported, whatever became of them.
func (c *racer) expire() {
	c.mu.Lock()
	refs := make([]deadline.Ref, 0, 3)
	for range cap(refs) {
		if len(c.expiring) > 0 {
			refs = append(refs, pick(c.rng, c.expiring))
		}
	}
	c.mu.Unlock()
	began := c.ticker.Add(1)
	for i, result := range c.broker.Deadlines().Expire(refs, deadline.Eager, true, nil) {
		message := int(refs[i].Seq>>56) - 1
		c.record(began, operation{expires, message, int64(refs[i].Deadline)}, answer{outcome: result.Outcome})
	}
}

func (c *racer) tick() {
	by := 1 + c.rng.Int64N(3000)
	began := c.ticker.Add(1)
	now := c.nowMicros.Add(by)
	c.record(began, operation{ticks, -1, by}, answer{micros: now})
}

func (c *racer) purge() {
	began := c.ticker.Add(1)
	c.queue.Messages.Purge()
	c.record(began, operation{kind: purges, message: -1}, answer{})
}

// dig empties the dead-letter queue: no message may be in it twice.
func (c *racer) dig() {
	require.NoError(c.t, c.broker.Forwarded(c.t.Context()))
	found := map[int]bool{}
	for more := true; more; {
		var err error
		more, err = c.dead.Messages.Get(true, func(d *broker.Delivery) {
			require.False(c.t, found[messageOf(d)], "message %d died twice", messageOf(d))
			found[messageOf(d)] = true
		})
		require.NoError(c.t, err)
	}
	for message := range min(int(c.published.Load()), raceMessages) {
		c.record(c.ticker.Add(1), operation{kind: digs, message: message}, answer{found: found[message]})
	}
}
