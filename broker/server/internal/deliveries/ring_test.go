package deliveries

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"curfew/broker"
	"curfew/broker/queue"
)

func TestUnackedIsAMapByTag(t *testing.T) {
	q := new(broker.Queue)
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		model, next := map[uint64]queue.Seq{}, uint64(0)
		steps := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 60).Draw(t, "steps")
		for i, step := range steps {
			switch {
			case step < 4: // a run of deliveries
				for n := range rapid.IntRange(1, 700).Draw(t, "deliveries") {
					next++
					if step == 0 && n > 0 {
						assert.Equal(t, next, r.skip())
						continue
					}
					seq := queue.Seq(i*1000 + n)
					assert.Equal(t, next, r.add(Unacked{Queue: q, Seq: seq}))
					model[next] = seq
				}
			case step < 7:
				tag := rapid.Uint64Range(0, next+1).Draw(t, "tag")
				h, ok := r.take(tag)
				want, held := model[tag]
				assert.Equal(t, held, ok)
				assert.Equal(t, want, h.Seq)
				delete(model, tag)
				if ok && step == 6 { // a rollback
					r.putBack(tag, h)
					model[tag] = want
				}
			default:
				tag := rapid.Uint64Range(0, next+1).Draw(t, "up to")
				var want []queue.Seq
				for _, held := range slices.Sorted(maps.Keys(model)) {
					if tag == 0 || tag <= next && held <= tag {
						want = append(want, model[held])
						delete(model, held)
					}
				}
				assert.Len(t, r.tagsUpTo(tag, 100_000), len(want))
				upTo := tag
				if tag == 0 {
					upTo = next
				} else if tag > next {
					upTo = 0
				}
				var got []queue.Seq
				var taken []Unacked
				for at := uint64(1); at <= upTo; {
					before := len(taken)
					taken, at = r.takeSome(at, upTo, nil, 300, taken)
					assert.LessOrEqual(t, len(taken)-before, 300)
				}
				for _, h := range taken {
					got = append(got, h.Seq)
				}
				assert.Equal(t, want, got, "all of them, in order")
			}
			assert.Equal(t, len(model), r.count)
		}
		paged := map[queue.Seq]int{}
		for page, at := r.page(0, nil); len(page) > 0; page, at = r.page(at, nil) {
			for i := range page {
				paged[page[i].Seq]++
			}
		}
		for _, seq := range model {
			assert.Equal(t, 1, paged[seq], "once each")
		}
		assert.Len(t, paged, len(model))
	})
}

func TestOneHeldForLongCostsOnlyItself(t *testing.T) {
	var r ring
	held := Unacked{Queue: new(broker.Queue)}
	r.add(held)
	for range 1_000_000 {
		tag := r.add(held)
		r.take(tag)
	}
	assert.LessOrEqual(t, r.tags(), ringLarge)
	assert.Equal(t, 1, r.count)
	_, ok := r.take(1)
	assert.True(t, ok)
	for range 1_000_000 {
		r.skip()
	}
	assert.Zero(t, r.count)
}

// TestMillionsAreNotCopied: a tag is given out, and a step of deliveries ends, in a moment also when there are very many.
func TestMillionsAreNotCopied(t *testing.T) {
	var r ring
	held := Unacked{Queue: new(broker.Queue), Consumer: new(Consumer)}
	for range 3_000_000 {
		r.add(held)
	}
	assert.Less(t, testing.AllocsPerRun(1, func() {
		for range 1000 {
			r.add(held)
		}
	}), float64(1000/chunkTags+2))
	out, next := r.takeSome(1, r.next, new(Consumer), 4096, nil)
	assert.Empty(t, out, "of another consumer")
	assert.EqualValues(t, 4097, next)
	out, next = r.takeSome(1, r.next, held.Consumer, 4096, nil)
	assert.Equal(t, 4096, len(out))
	out, _ = r.takeSome(next, r.next, nil, 4_000_000, nil)
	assert.Len(t, out, 3_002_000-4096)
	assert.Empty(t, r.chunks, "it is given back")
	assert.EqualValues(t, 3_002_001, r.add(held))
}

// TestFewOfManyAreTakenInSteps: what is left of very many deliveries is taken and listed some at a time.
func TestFewOfManyAreTakenInSteps(t *testing.T) {
	var r ring
	held := Unacked{Queue: new(broker.Queue), Seq: 1}
	for i := range 200_000 {
		if tag := r.add(held); i%10 > 0 {
			r.take(tag)
		}
	}
	assert.EqualValues(t, 20_000, r.count)
	page, next := r.page(0, nil)
	assert.Equal(t, 4*ringLarge, len(page))
	page, _ = r.page(next, nil)
	assert.Equal(t, 4*ringLarge, len(page))
	out, next := r.takeSome(1, r.next, nil, 4096, nil)
	assert.Equal(t, 4096, len(out))
	assert.EqualValues(t, 40_961, next)
	assert.EqualValues(t, 20_000-4096, r.count)
}

// TestLapse: the lock of a message lapses that was given up once, while an earlier one of the channel is still held.
func TestLapse(t *testing.T) {
	var r ring
	q := new(broker.Queue)
	lapse := func(seq queue.Seq) bool {
		_, ok := r.lapse(lockKey{q.ID, seq})
		return ok
	}
	locked := func(seq queue.Seq) uint64 { return r.add(Unacked{Queue: q, Seq: seq, locked: true}) }
	locked(1)
	locked(2)
	_, ok := r.take(2)
	assert.True(t, ok)
	assert.False(t, lapse(2), "it was settled")
	locked(2)
	assert.True(t, lapse(1))
	assert.True(t, lapse(2))
	assert.False(t, lapse(2), "it has lapsed")
	for tag := uint64(1); tag <= 3; tag += 2 {
		m, ok := r.take(tag)
		assert.True(t, ok)
		assert.Zero(t, m.Seq)
	}
	far := locked(3)
	for range ringLarge * ringSparse { // it is left behind
		r.take(locked(4))
	}
	m, _ := r.take(far)
	r.putBack(far, m)
	locked(5)
	assert.True(t, lapse(3), "of an old one")
	out, _ := r.takeSome(1, r.next, nil, 100, nil)
	assert.Len(t, out, 2)
	assert.Empty(t, r.locked, "as they are settled")
}

// TestLapseAfterARelease: what is old has its lock although the memory of a large ring was given back.
func TestLapseAfterARelease(t *testing.T) {
	var r ring
	q := new(broker.Queue)
	locked := func(seq queue.Seq) uint64 { return r.add(Unacked{Queue: q, Seq: seq, locked: true}) }
	locked(1)
	var tags []uint64
	for i := range queue.Seq(2 * ringLarge) {
		tags = append(tags, locked(i+2))
	}
	for _, tag := range tags {
		r.take(tag)
	}
	for i := range queue.Seq(4 * ringLarge * ringSparse) { // the first is left behind
		r.take(locked(i + 2*ringLarge + 2))
	}
	require.Equal(t, 1, r.old.Len())
	_, ok := r.lapse(lockKey{q.ID, 1})
	require.True(t, ok)
}

// Locks of several queues, and those that were renewed, do not lapse in the order of delivery: none is searched for.
func TestLocksLapseInAnyOrder(t *testing.T) {
	var r ring
	const n = 100_000
	queues := [2]*broker.Queue{new(broker.Queue), new(broker.Queue)}
	queues[1].ID = 1
	for i := range queue.Seq(2 * n) {
		r.add(Unacked{Queue: queues[i/n], Seq: i%n + 1, locked: true})
	}
	began := time.Now()
	for i := range queue.Seq(n) {
		for _, key := range []lockKey{{0, n - i}, {1, n - i}} {
			if _, ok := r.lapse(key); !ok {
				t.Fatal(key, "is not there")
			}
		}
	}
	assert.Less(t, time.Since(began), 10*time.Second, "as many searches would take a minute")
}
