package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A transaction that is larger than a segment is written in place, and survives.
func TestLargeTransactionsAreWrittenInPlace(t *testing.T) {
	o := Options{Dir: t.TempDir(), SegmentBytes: minSegmentBytes}
	s, _ := openDisk(t, o)
	pos, err := s.Put(Message{Exchange: []byte("x"), Body: []byte("m")}, true, 1)
	require.NoError(t, err)
	const n = minSegmentBytes / entryBytes
	s.Retain(pos, 4*n-1)
	for _, first := range []int{0, 2 * n} {
		in := make([]Enqueue, 2*n)
		for i := range in {
			in[i] = Enqueue{Queue: 1, Seq: uint64(first + i + 1), Pos: pos, Durable: true}
		}
		s.Transacted(in, nil)
	}
	var out []Settle
	for seq := uint64(1); seq <= 4*n; seq += 2 {
		out = append(out, Settle{Queue: 1, Seq: seq, Pos: pos, Durable: true})
	}
	s.Transacted(nil, out)
	assert.Positive(t, s.LongestHold())
	assert.Equal(t, 4, s.Stats().Segments, "the message has one, and each transaction")
	require.NoError(t, s.Close())

	s, found := openDisk(t, o)
	defer func() { require.NoError(t, s.Close()) }()
	require.Len(t, found.Queues, 1)
	entries := found.Queues[0].Entries
	require.Len(t, entries, 2*n)
	for i, e := range entries {
		require.EqualValues(t, 2*(i+1), e.Seq)
		require.Equal(t, pos, e.Pos)
	}
}
