package keeper

import (
	"slices"

	"curfew/broker/deadline"
)

// PendingBefore appends the number of held deadlines up to each of the instants, which are in order. It looks at
// every message held.
func (k *Keeper) PendingBefore(until []deadline.Instant, out []int64) []int64 {
	counts := make([]int64, len(until)+1)
	k.mu.Lock()
	for i := range k.core.line.held.entries {
		if e := &k.core.line.held.entries[i]; e.tag != 0 && e.deadline != never {
			at, _ := slices.BinarySearch(until, e.deadline)
			counts[at]++
		}
	}
	k.mu.Unlock()
	sum := int64(0)
	for _, n := range counts[:len(until)] {
		sum += n
		out = append(out, sum)
	}
	return out
}
