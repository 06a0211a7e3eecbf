package chunked

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSliceLikeOneOfGo(t *testing.T) {
	var a Slice[int]
	var want []int
	rng := rand.New(rand.NewPCG(1, 1))
	for _, most := range []int{10, 5 * chunkLen, 0, 3 * chunkLen, 1} {
		for len(want) != most {
			if more := rng.IntN(4) > 0; more == (len(want) < most) || len(want) == 0 {
				n := rng.Int()
				a.Push(n)
				want = append(want, n)
			} else {
				require.Equal(t, want[len(want)-1], a.Pop())
				want = want[:len(want)-1]
			}
			require.Equal(t, len(want), a.Len())
			require.LessOrEqual(t, len(a.chunks), len(want)/chunkLen+2)
			if len(want) > 0 {
				i := rng.IntN(len(want))
				require.Equal(t, want[i], *a.At(i))
			}
		}
	}
}

// Nothing is copied when it grows: what stood behind the first chunk stays where it is.
func TestSliceDoesNotMove(t *testing.T) {
	var a Slice[int]
	for i := range 2 * chunkLen {
		a.Push(i)
	}
	at := a.At(chunkLen)
	for i := range 100 * chunkLen {
		a.Push(i)
	}
	require.Same(t, at, a.At(chunkLen))
}
