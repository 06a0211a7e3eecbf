package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// used is a disk on which a store was used and then closed, with its contents.
func usedDisk(t *testing.T, seed uint64) (*crashDisk, *world) {
	w := newWorld(t, seed)
	disk := newCrashDisk()
	s, r, err := openOn(disk, tiny(SyncGroup), &Options{Relocate: w.relocate})
	require.NoError(t, err)
	w.recovered(s, r)
	w.run(s, 400)
	w.commit(s, true)
	require.NoError(t, s.Close())
	return disk, w
}

// clone copies a disk on which everything is synced.
func (d *crashDisk) clone() *crashDisk {
	return d.afterCrash(rand.New(rand.NewPCG(1, 1)), 1)
}

// journals lists the files of segments that contain something, in order.
func (d *crashDisk) journals() (names []string) {
	for name, n := range d.names {
		if _, ok := fileNumber(name); ok && len(n.data) >= 8 && string(n.data[:8]) == journalMagic {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// end returns the end of what was written to a file.
func (n *inode) end() int {
	end := len(n.data)
	for end > 0 && n.data[end-1] == 0 {
		end--
	}
	return end
}

// lastDropped returns the end of the last record of dropped segments.
func (n *inode) lastDropped() (end int) {
	n.each(func(at int, k kind, length int) {
		if k == kindDropped {
			end = at + length
		}
	})
	return end
}

// each calls fn for the records of a segment file.
func (n *inode) each(fn func(at int, k kind, length int)) {
	for at := fileHeader; at+recordHeader <= len(n.data); {
		k, length := header(n.data[at:])
		if k == 0 {
			return
		}
		fn(at, k, length)
		at += align(length)
	}
}

func reopen(disk *crashDisk) (*Store, *Recovery, error) {
	return openOn(disk, tiny(SyncGroup), &Options{})
}

// The last file, cut at every byte: a prefix is left, and the cut is reported.
func TestTornTailAtEveryByte(t *testing.T) {
	disk, w := usedDisk(t, 3)
	names := disk.journals()
	last := names[len(names)-1]
	w.confirmed = 0
	end := disk.names[last].end()
	whole, facts := w.base, w.facts
	floor := disk.names[last].lastDropped()
	for cut := 0; cut < end; cut++ {
		torn := disk.clone()
		torn.names[last].data = torn.names[last].data[:cut]
		s, r, err := reopen(torn)
		if cut < floor && err != nil {
			require.ErrorContains(t, err, "missing", "that segments were dropped was synced, and is gone")
			continue
		}
		require.NoError(t, err, "cut at %d", cut)
		w.base, w.facts = whole, facts
		w.recovered(s, r)
		if r.CutBytes > 0 {
			require.Equal(t, last, r.CutFile)
			require.LessOrEqual(t, r.CutOffset+r.CutBytes, int64(cut))
		}
		require.NoError(t, s.Close())
		s, again, err := reopen(torn)
		require.NoError(t, err)
		require.Equal(t, r.Queues, again.Queues)
		require.Zero(t, again.CutBytes, "what was cut is gone")
		require.NoError(t, s.Close())
	}
}

// A flipped bit is noticed, except where it does not matter: in padding, or in the last
// mark, which closing writes.
func TestFlippedBits(t *testing.T) {
	disk, w := usedDisk(t, 4)
	rng := rand.New(rand.NewPCG(4, 4))
	names := disk.journals()
	whole, facts, confirmed := w.base, w.facts, w.confirmed
	refused := 0
	for range 500 {
		damaged := disk.clone()
		name := names[rng.IntN(len(names))]
		n := damaged.names[name]
		at := rng.IntN(n.end())
		n.data[at] ^= 1 << rng.IntN(8)
		s, r, err := reopen(damaged)
		if err != nil {
			require.Contains(t, err.Error(), name)
			refused++
			continue
		}
		w.base, w.facts, w.confirmed = whole, facts, confirmed
		w.recovered(s, r)
		require.NoError(t, s.Close())
	}
	require.Greater(t, refused, 400)
}

// A file that has lost its header is not taken for a spare one: its records would be valid
// again when the file is used.
func TestLostHeader(t *testing.T) {
	b := newDropTest(t, Options{})
	b.publish(1)
	commit(t, b.Store)
	b.fill()
	for seq := uint64(2); seq < 8; seq++ {
		b.publish(seq)
		commit(t, b.Store)
	}
	b.shutdown()
	n := b.disk.names[fileName(2)]
	clear(n.data[:sector])
	_, _, err := reopen(b.disk)
	var corrupt *corruptError
	require.ErrorAs(t, err, &corrupt, "there are marks that say it was synced")
	require.Equal(t, fileName(2), corrupt.File)

	for at := sector; at+markBytes <= len(n.data); at += 8 {
		if k, length := header(n.data[at:]); k == kindMark && length == markBytes {
			clear(n.data[at : at+markBytes])
		}
	}
	for range 2 {
		s, r, err := reopen(b.disk)
		require.NoError(t, err)
		require.Equal(t, []uint64{1}, seqs(r))
		p, err := s.Put(text(9, 64), true, 0)
		require.NoError(t, err)
		s.Release(p)
		require.NoError(t, s.Close())
	}
}

// needed lists the files without which the store cannot open.
func needed(t *testing.T, disk *crashDisk) (names []string) {
	r := newRecovery(disk, zap.NewNop(), nil)
	defer r.unmap()
	_, err := r.read()
	require.NoError(t, err)
	for _, s := range r.files {
		names = append(names, s.name)
	}
	return names
}

func TestMissingFiles(t *testing.T) {
	disk, _ := usedDisk(t, 5)
	for _, name := range needed(t, disk) {
		without := disk.clone()
		delete(without.names, name)
		_, _, err := reopen(without)
		var corrupt *corruptError
		require.ErrorAs(t, err, &corrupt)
		require.NotContains(t, without.names, corrupt.File) // this one, or one that only a record in it says is not needed
		require.ErrorContains(t, err, "missing")
	}
	only := newDropTest(t, Options{})
	only.fill()
	only.fill()
	only.maintain()
	commit(t, only.Store)
	only.shutdown()
	require.Equal(t, []string{fileName(3)}, needed(t, only.disk))
	delete(only.disk.names, fileName(3))
	_, _, err := reopen(only.disk)
	require.ErrorContains(t, err, fileName(3)+" is damaged at offset 0: the file is missing")

	without := disk.clone()
	without.write(definitionsName, encodeDefinitions(1, nil))
	for name := range without.names {
		if name != definitionsName {
			delete(without.names, name)
		}
	}
	_, _, err = reopen(without)
	require.ErrorContains(t, err, "no journal files")
}

func TestForeignFiles(t *testing.T) {
	disk, _ := usedDisk(t, 6)
	other, _ := usedDisk(t, 7)
	name := disk.journals()[0]

	mixed := disk.clone()
	mixed.names[fileName(90)] = other.names[other.journals()[0]]
	_, _, err := reopen(mixed)
	require.Error(t, err)

	renamed := disk.clone()
	renamed.names[fileName(99)] = renamed.names[name]
	_, _, err = reopen(renamed)
	require.ErrorContains(t, err, "under another name")

	stranger := disk.clone()
	stranger.names["notes.txt"] = &inode{data: []byte("mine")}
	s, _, err := reopen(stranger)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, "mine", string(stranger.names["notes.txt"].data))
}

func TestOtherVersionIsRefused(t *testing.T) {
	disk, _ := usedDisk(t, 8)
	name := disk.journals()[0]
	for _, other := range []byte{version - 1, version + 1} {
		disk.names[name].data[8] = other
		before := fmt.Sprint(disk.names[name].data)
		_, _, err := reopen(disk)
		require.ErrorIs(t, err, errVersion)
		require.ErrorContains(t, err, name)
		require.Equal(t, before, fmt.Sprint(disk.names[name].data))
	}
}

// The marks distinguish damage from a torn tail: once the last mark is written, even the
// last batch is known to have been synced.
func TestLastMarkIsWrittenWhenIdle(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	p, err := s.Put(text(1, 100), true, 1)
	require.NoError(t, err)
	s.Enqueued([]Enqueue{{Queue: 1, Seq: 1, Pos: p, Durable: true}})
	commit(t, s)
	require.Eventually(t, func() bool {
		return disk.marks() >= 2
	}, waitFor, tick)
	require.NoError(t, s.Close())
	n := disk.names[fileName(1)]
	n.data[p.offset()+40] ^= 1
	_, _, err = reopen(disk)
	var corrupt *corruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, int64(p.offset()), corrupt.Offset)
}

// marks counts the marks written to the first segment.
func (d *crashDisk) marks() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names[fileName(1)].each(func(_ int, k kind, _ int) {
		if k == kindMark {
			n++
		}
	})
	return n
}
