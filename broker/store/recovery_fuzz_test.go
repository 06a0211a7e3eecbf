package store

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzRecovery damages the files of a store as the input determines. Open returns only
// messages that were put, or an error. What it accepted once it accepts again.
func FuzzRecovery(f *testing.F) {
	f.Add([]byte{0, 0, 100, 1})
	f.Add([]byte{200, 1, 0, 0xff, 3, 2, 0, 0x80})
	f.Add([]byte{1, 0, 64, 0, 1, 0, 65, 0, 255, 9, 0, 0})
	disk, w := usedDisk(&testing.T{}, 11)
	names := disk.journals()
	f.Fuzz(func(t *testing.T, script []byte) {
		damaged := disk.clone()
		for ; len(script) >= 4; script = script[4:] {
			n := damaged.names[names[int(script[0])%len(names)]]
			at := int(script[1])<<8 | int(script[2])
			switch {
			case at >= len(n.data):
				n.data = n.data[:max(0, len(n.data)-int(script[3]))]
			case script[3] == 0:
				clear(n.data[at:min(len(n.data), at+sector)])
			default:
				n.data[at] ^= script[3]
			}
		}
		s, r, err := reopen(damaged)
		if err != nil {
			var corrupt *corruptError
			require.True(t, errors.As(err, &corrupt) || errors.Is(err, errVersion), "%v", err)
			return
		}
		checkBodies(t, w, s, r)
		require.NoError(t, s.Close())
		s, again, err := reopen(damaged)
		require.NoError(t, err)
		require.Equal(t, r.Queues, again.Queues)
		require.NoError(t, s.Close())
	})
}

// checkBodies checks that what was found had been put.
func checkBodies(t *testing.T, w *world, s *Store, r *Recovery) {
	bodies := map[string]bool{}
	for id := range w.ids + 1 {
		bodies[string(message(id).Body)] = true
	}
	for _, q := range r.Queues {
		for _, e := range q.Entries {
			require.True(t, bodies[string(s.View(e.Pos).Body)], "a wrong body")
		}
	}
}
