package deliveries

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
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
					assert.Equal(t, next, r.add(delivery{queue: q, seq: seq}))
					model[next] = seq
				}
			case step < 7:
				tag := rapid.Uint64Range(0, next+1).Draw(t, "tag")
				h, ok := r.take(tag)
				want, held := model[tag]
				assert.Equal(t, held, ok)
				assert.Equal(t, want, h.seq)
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
				assert.Len(t, r.tagsUpTo(tag), len(want))
				var got []queue.Seq
				taken, more := r.takeUpTo(tag, 300, nil)
				for upTo := tag; more; {
					if upTo == 0 {
						upTo = next
					}
					before := len(taken)
					taken, more = r.takeUpTo(upTo, 300, taken)
					assert.LessOrEqual(t, len(taken)-before, 300)
				}
				for _, h := range taken {
					got = append(got, h.seq)
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
	held := delivery{queue: new(broker.Queue)}
	r.add(held)
	for range 1_000_000 {
		tag := r.add(held)
		r.take(tag)
	}
	assert.LessOrEqual(t, len(r.slots), ringLarge)
	assert.Equal(t, 1, r.count)
	_, ok := r.take(1)
	assert.True(t, ok)
	for range 1_000_000 {
		r.skip()
	}
	assert.Zero(t, r.count)
}
