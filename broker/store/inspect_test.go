package store

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInspectAndVerify(t *testing.T) {
	o := Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}
	s, _ := openDisk(t, o)
	for i := range 5 {
		p, err := s.Put(text(i, 100), true, 1)
		require.NoError(t, err)
		s.Enqueued([]Enqueue{{Queue: 42, Seq: uint64(i + 10), Pos: p, Durable: true}})
	}
	defineNow(t, s, def("a", "1"), def("b", "2"))
	require.NoError(t, s.Close())
	var out bytes.Buffer
	require.NoError(t, Inspect(o.Dir, &out))
	require.Regexp(t, `(?m)^0000000001.journal +\d+ +5  open$`, out.String())
	require.Regexp(t, `(?m)^0000000002.journal +262144 +-  spare$`, out.String())
	require.Regexp(t, `(?m)^definitions +\d+ +2  2$`, out.String())
	require.Regexp(t, `(?m)^42 +5 +10 +14$`, out.String())
	out.Reset()
	require.NoError(t, Verify(o.Dir, &out))
	require.Regexp(t, `^1 segment, 262144 bytes read, 5 messages in queues, 2 definitions: ok\n$`, out.String())

	for name, at := range map[string]int{definitionsName: 50, fileName(1): 300} {
		path := filepath.Join(o.Dir, name)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		b := slices.Clone(whole)
		b[at] ^= 1
		require.NoError(t, os.WriteFile(path, b, 0o600))
		for _, look := range []func(string, io.Writer) error{Inspect, Verify} {
			var corrupt *corruptError
			require.ErrorAs(t, look(o.Dir, &out), &corrupt)
			require.Equal(t, name, corrupt.File)
		}
		require.NoError(t, os.WriteFile(path, whole, 0o600))
	}
	require.Error(t, Verify(filepath.Join(o.Dir, "missing"), &out))
}
