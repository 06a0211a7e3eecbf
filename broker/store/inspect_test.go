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

// TestRepair: what needs no lost data is put right, once the operator agrees. Everything else is
// refused, with what to do.
func TestRepair(t *testing.T) {
	fill := func() (o Options) {
		o = Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}
		s, _ := openDisk(t, o)
		for i := range 1500 {
			p, err := s.Put(text(i, 600), true, 1)
			require.NoError(t, err)
			s.Enqueued([]Enqueue{{Queue: 42, Seq: uint64(i + 1), Pos: p, Durable: true}})
		}
		commit(t, s)
		require.NoError(t, s.Close())
		s, _ = openDisk(t, o) // ends the last segment
		require.NoError(t, s.Close())
		return o
	}
	never := func() bool { t.Error("asked"); return false }
	yes := func() bool { return true }
	var out bytes.Buffer
	o := fill()
	names, err := filepath.Glob(filepath.Join(o.Dir, "*"+journalSuffix))
	require.NoError(t, err)
	require.NoError(t, Repair(o.Dir, &out, never))
	require.Equal(t, "nothing to repair\n", out.String())

	var spares []string
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil && (&inode{data: b}).end() == 0 {
			spares = append(spares, name)
		}
	}
	require.NotEmpty(t, spares)
	for _, name := range spares {
		require.NoError(t, os.Remove(name))
	}
	err = Verify(o.Dir, &out)
	require.ErrorContains(t, err, filepath.Base(spares[0])+" is damaged at offset 0: the file is missing; `curfew store repair` can make an empty one")
	require.EqualError(t, Repair(o.Dir, &out, func() bool { return false }), err.Error())
	require.EqualError(t, Verify(o.Dir, &out), err.Error(), "nothing was changed")
	out.Reset()
	require.NoError(t, Repair(o.Dir, &out, yes))
	require.Regexp(t, `(?s)the file is missing.*Nothing that is in the folder is lost by that.*: repaired\nthe store is in order\n$`, out.String())

	require.NoError(t, os.Rename(names[0], filepath.Join(o.Dir, fileName(99))))
	require.NoError(t, Repair(o.Dir, &out, yes))
	require.FileExists(t, names[0])
	s, r := openDisk(t, o)
	require.Len(t, r.Queues[0].Entries, 1500)
	require.NoError(t, s.Close())

	require.NoError(t, os.Remove(names[1]))
	require.ErrorContains(t, Repair(o.Dir, &out, never), "it cannot be repaired: restore the whole data directory from a backup")
	require.Error(t, Repair(filepath.Join(o.Dir, "missing"), &out, never))
	require.NoDirExists(t, filepath.Join(o.Dir, "missing"))

	o = Options{Dir: t.TempDir()}
	s, _ = openDisk(t, o)
	defineNow(t, s, def("a", "1"))
	require.NoError(t, s.Close())
	names, err = filepath.Glob(filepath.Join(o.Dir, "*"+journalSuffix))
	require.NoError(t, err)
	for _, name := range names {
		require.NoError(t, os.Remove(name))
	}
	require.ErrorContains(t, Verify(o.Dir, &out), "no journal files")
	require.NoError(t, Repair(o.Dir, &out, yes))
	s, r = openDisk(t, o)
	require.Equal(t, []Definition{def("a", "1")}, r.Definitions)
	require.NoError(t, s.Close())
}
