package delivery

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// eater takes as many messages as it is hungry for.
type eater struct {
	Consumer
	hungry int
	asked  *int // how often all of them were
}

func (e *eater) Pull(*Consumer, *Source, int) (taken int, more bool) {
	*e.asked++
	if e.hungry > 0 {
		e.hungry--
		taken = 1
	}
	return taken, e.hungry > 0
}

func (e *eater) Cancelled(*Consumer) {}

// plainTurns is what consumers are, with a look at each for each message.
type plainTurns struct {
	levels map[int64][]*eater
	turn   map[int64]int
}

func (p *plainTurns) next() *eater {
	for priority := int64(2); priority >= 0; priority-- {
		all := p.levels[priority]
		for i := range all {
			at := (p.turn[priority] + i) % len(all)
			if c := all[at]; c.hungry > 0 {
				p.turn[priority] = (at + 1) % len(all)
				return c
			}
		}
	}
	return nil
}

func (p *plainTurns) remove(c *eater) {
	all := p.levels[c.Priority]
	i := slices.Index(all, c)
	p.levels[c.Priority] = slices.Delete(all, i, i+1)
	if p.turn[c.Priority] > i {
		p.turn[c.Priority]--
	}
	if p.turn[c.Priority] == len(all)-1 {
		p.turn[c.Priority] = 0
	}
}

// TestConsumersTakeTurns: whoever comes, goes, waits or takes again, the next message is for the consumer that would get it if each were asked.
func TestConsumersTakeTurns(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	q, s := retainingQueue(t)
	plain := plainTurns{map[int64][]*eater{}, map[int64]int{}}
	var all []*eater
	asked := 0
	for step := range 20_000 {
		switch what := rng.IntN(10); {
		case what == 0 || len(all) == 0:
			c := &eater{asked: &asked}
			c.Priority, c.Sink = rng.Int64N(3), c
			all = append(all, c)
			q.consumers.addLocked(&c.Consumer)
			plain.levels[c.Priority] = append(plain.levels[c.Priority], c)
		case what == 1 && len(all) > 20:
			i := rng.IntN(len(all))
			c := all[i]
			all = slices.Delete(all, i, i+1)
			plain.remove(c)
			require.True(t, q.consumers.removeLocked(&c.Consumer))
			require.False(t, q.consumers.removeLocked(&c.Consumer))
			q.consumers.waitLocked(&c.Consumer, false) // of no effect
		case what < 6:
			c := all[rng.IntN(len(all))]
			c.hungry = rng.IntN(4)
			q.consumers.waitLocked(&c.Consumer, false)
		default:
			want, before := plain.next(), map[*eater]int{}
			for _, c := range all {
				before[c] = c.hungry
			}
			taken := q.consumers.offerLocked(s, 1)
			var got *eater
			for _, c := range all {
				if c.hungry < before[c] {
					got = c
				}
			}
			require.Equal(t, want != nil, taken == 1, "step %d", step)
			require.True(t, want == got, fmt.Sprintf("step %d", step))
		}
	}
}

// TestWhoWaitsIsNotAsked: an ack among very many consumers that wait costs what it costs among few.
func TestWhoWaitsIsNotAsked(t *testing.T) {
	q, s := retainingQueue(t)
	all, asked := make([]eater, 20_000), 0
	for i := range all {
		c := &all[i]
		c.Sink, c.asked = c, &asked
		q.consumers.addLocked(&c.Consumer)
	}
	s.passed = 0
	for i := 0; i < len(all); i += 7 {
		c := &all[len(all)-1-i]
		c.hungry = 1
		q.consumers.waitLocked(&c.Consumer, false)
		require.Equal(t, 1, q.consumers.offerLocked(s, 1))
		require.Zero(t, q.consumers.offerLocked(s, 1))
	}
	assert.Equal(t, (len(all)+6)/7, asked)
	assert.Zero(t, s.passed)
}

// BenchmarkAckAmongWaitingConsumers is what an ack costs on a queue with n consumers of which only the one that acks can take the next message.
func BenchmarkAckAmongWaitingConsumers(b *testing.B) {
	for _, n := range []int{1, 1000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			q, s := retainingQueue(b)
			all, asked := make([]eater, n), 0
			for i := range all {
				c := &all[i]
				c.Sink, c.asked = c, &asked
				q.consumers.addLocked(&c.Consumer)
			}
			rng := rand.New(rand.NewPCG(1, 1))
			for b.Loop() {
				c := &all[rng.IntN(n)]
				c.hungry = 1
				q.consumers.waitLocked(&c.Consumer, false)
				q.consumers.offerLocked(s, 1)
				q.consumers.offerLocked(s, 1)
			}
		})
	}
}
