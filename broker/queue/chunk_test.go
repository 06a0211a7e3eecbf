package queue

import (
	"testing"
)

func TestNextBit(t *testing.T) {
	words := []uint64{1<<3 | 1<<5, 0, 1 << 63}
	for from, want := range map[uint]int{0: 3, 3: 3, 4: 5, 6: 191, 64: 191, 191: 191, 192: -1, 500: -1} {
		i, ok := nextBit(words, from)
		if ok != (want >= 0) || ok && int(i) != want {
			t.Errorf("from %d: %d, %v", from, i, ok)
		}
	}
	if _, ok := nextBit(words[:2], 6); ok {
		t.Error("found a bit in nothing")
	}
}
