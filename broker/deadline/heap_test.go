package deadline

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHeapAgainstASlice: whatever is pushed, removed and changed, the first is the lowest, and everyone knows its place.
func TestHeapAgainstASlice(t *testing.T) {
	type item struct{ value, place int }
	r := rand.New(rand.NewPCG(1, 2))
	h := Heap[*item]{Before: func(a, b *item) bool { return a.value < b.value }, Moved: func(i *item, place int) { i.place = place }}
	var all []*item
	for range 10_000 {
		switch n := r.IntN(10); {
		case n < 5 || len(all) == 0:
			all = append(all, &item{value: r.IntN(1000)})
			h.Push(all[len(all)-1])
		case n < 8:
			at := r.IntN(len(all))
			require.Same(t, all[at], h.Remove(all[at].place))
			require.Equal(t, -1, all[at].place)
			all = slices.Delete(all, at, at+1)
		case n < 9:
			one := all[r.IntN(len(all))]
			one.value = r.IntN(1000)
			h.Fix(one.place)
		default:
			for _, one := range all {
				one.value = r.IntN(1000)
			}
			h.Init()
		}
		require.Len(t, h.Items, len(all))
		for place, one := range h.Items {
			require.Equal(t, place, one.place)
			require.LessOrEqual(t, h.Items[max(0, (place-1)/2)].value, one.value)
		}
	}
}
