package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func def(key, value string) Definition { return Definition{key, []byte(value)} }

// saved returns what a start finds defined, as "key=value".
func saved(list []Definition) (lines []string) {
	for _, d := range list {
		lines = append(lines, d.Key+"="+string(d.Value))
	}
	return lines
}

// found returns what a start finds.
func found(t *testing.T, disk *crashDisk) []string {
	t.Helper()
	s, r, err := reopen(disk)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return saved(r.Definitions)
}

func defineNow(t testing.TB, s *Store, changes ...Definition) {
	t.Helper()
	s.Define(changes...)
	require.NoError(t, s.SyncDefinitions())
}

// TestRecordsDoNotWaitForRemovals: very many removals may take a second to write, and no message waits for that.
func TestRecordsDoNotWaitForRemovals(t *testing.T) {
	s, _ := openDisk(t, Options{Dir: t.TempDir()})
	defineNow(t, s, Definition{"a", []byte("1")}, Definition{"b", []byte("1")})
	s.definitions.writing.Lock() // they are being written
	s.Undefine(Definition{Key: "a"})
	put := func() chan error {
		p, err := s.Put(text(1, 100), true, 0)
		require.NoError(t, err)
		s.Release(p)
		done := make(chan error, 1)
		s.Commit(func(err error) { done <- err })
		return done
	}
	require.NoError(t, <-put())
	s.Define(Definition{"c", []byte("1")})
	done := put()
	select {
	case <-done:
		require.Fail(t, "a record was safe before the definition that it may refer to")
	case <-time.After(50 * time.Millisecond):
	}
	s.definitions.writing.Unlock()
	require.NoError(t, <-done)
	require.NoError(t, s.Close())
}

func TestDefinitions(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	s, r := openDisk(t, o)
	require.Empty(t, r.Definitions)
	require.NoError(t, s.SyncDefinitions(), "nothing to do")
	defineNow(t, s, def("a", "1"), def("b", "1"))
	defineNow(t, s, def("c", ""), def("a", "2"))
	s.Define(def("d", "1"), def("e", "1"))
	s.Define(def("d", "2"), def("e", ""))
	require.NoError(t, s.SyncDefinitions())
	defineNow(t, s, def("b", ""))
	for range 3 {
		require.NoError(t, s.Close())
		s, r = openDisk(t, o)
		require.Equal(t, []string{"a=2", "d=2"}, saved(r.Definitions))
	}
	defineNow(t, s, def("b", "back"))
	require.NoError(t, s.Close())
	s, r = openDisk(t, o)
	require.Equal(t, []string{"a=2", "b=back", "d=2"}, saved(r.Definitions))
	require.NoError(t, s.Close())

	m := openMemory(t, Options{})
	defineNow(t, m, def("x", "y"))
}

// Those who wait while another goroutine writes share the next write.
func TestDefinitionsAreSyncedTogether(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	defineNow(t, s, def("first", "1"))
	disk.syncs = 0
	s.definitions.writing.Lock()
	var all sync.WaitGroup
	for i := range 50 {
		s.Define(def(fmt.Sprint(i), "1"))
		all.Go(func() { require.NoError(t, s.SyncDefinitions()) })
	}
	s.definitions.writing.Unlock()
	all.Wait()
	require.Equal(t, 1, disk.syncs)
	require.NoError(t, s.Close())
	require.Len(t, found(t, disk), 51)
}

// The cost of a change grows neither with what exists nor with what existed.
func TestDefinitionsGrowLinearly(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	value := strings.Repeat("x", 2000)
	for i := range 150 {
		defineNow(t, s, def(fmt.Sprint("queue ", i), value))
		require.Less(t, disk.written, int64(4*(i+1)*(len(value)+100)), "each is written about three times in total")
	}
	for i := range 150 {
		s.Define(Definition{Key: fmt.Sprint("queue ", i)})
	}
	require.NoError(t, s.SyncDefinitions())
	for i := range 60 {
		defineNow(t, s, def("the same", fmt.Sprint(i, strings.Repeat(value, 25))))
	}
	require.LessOrEqual(t, len(disk.names[definitionsName].data), 4*25*len(value), "what is gone takes no space")
	require.NoError(t, s.Close())
}

// Random changes and crashes: what was synced is found, and of the rest everything up to
// some call.
func TestDefinitionsSurviveCrashes(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 3))
		disk := newCrashDisk()
		states, synced := []map[string]string{{}}, 0
		for range 6 {
			s, r, err := reopen(disk)
			if errors.Is(err, errCrashed) {
				disk = disk.afterCrash(rng, rng.Float64())
				continue
			}
			require.NoError(t, err)
			there := map[string]string{}
			for _, d := range r.Definitions {
				there[d.Key] = string(d.Value)
			}
			at := slices.IndexFunc(states[synced:], func(m map[string]string) bool { return maps.Equal(m, there) })
			require.GreaterOrEqual(t, at, 0, "seed %d: %d states", seed, len(states)-synced)
			states, synced = states[synced+at:][:1], 0
			disk.mu.Lock()
			disk.crashAt = disk.ops + 1 + rng.IntN(60)
			disk.mu.Unlock()
			for range 30 {
				next := maps.Clone(states[len(states)-1])
				var changes []Definition
				for range 1 + rng.IntN(3) {
					d := def(fmt.Sprint(rng.IntN(20)), strings.Repeat("v", rng.IntN(300)))
					if rng.IntN(3) == 0 {
						d.Value = nil
					}
					changes = append(changes, d)
					if next[d.Key] = string(d.Value); len(d.Value) == 0 {
						delete(next, d.Key)
					}
				}
				states = append(states, next)
				s.Define(changes...)
				if rng.IntN(3) > 0 && s.SyncDefinitions() == nil {
					synced = len(states) - 1
				}
			}
			_ = s.Close()
			disk = disk.afterCrash(rng, rng.Float64())
		}
	}
}

// someDefinitions returns a disk with a file of several batches, and the definitions after
// each of them.
func someDefinitions(t *testing.T) (disk *crashDisk, states [][]string) {
	disk = newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	for i := range 5 {
		defineNow(t, s, def(fmt.Sprint("key ", i), fmt.Sprint("value ", i)))
		r, err := scanDefinitions(disk)
		require.NoError(t, err)
		states = append(states, saved(r.latest.list()))
	}
	require.NoError(t, s.Close())
	return disk, states
}

// A flipped bit is refused with its place, except in padding, in zeros that were never
// written, and in the last mark.
func TestFlippedBitsInDefinitions(t *testing.T) {
	disk, states := someDefinitions(t)
	n := disk.names[definitionsName]
	refused := 0
	for i := range n.data[:n.end()+100] {
		n.data[i] ^= 1 << (i % 8)
		r, err := scanDefinitions(disk)
		n.data[i] ^= 1 << (i % 8)
		if err == nil {
			require.Equal(t, states[4], saved(r.latest.list()), "byte %d", i)
			continue
		}
		refused++
		var corrupt *corruptError
		if !errors.As(err, &corrupt) {
			require.ErrorIs(t, err, errVersion)
			continue
		}
		require.Equal(t, definitionsName, corrupt.File)
		require.LessOrEqual(t, corrupt.Offset, int64(i))
	}
	require.Greater(t, refused, n.end()*3/4)
	require.Equal(t, states[4], found(t, disk))
}

// The file, cut at every byte: what is left is some earlier state, and what was cut is
// missing; or the cut is noticed.
func TestTornDefinitionsAtEveryByte(t *testing.T) {
	disk, states := someDefinitions(t)
	whole := slices.Clone(disk.names[definitionsName].data)
	end := disk.names[definitionsName].end()
	n := 0
	for cut := range end {
		torn := disk.clone()
		torn.write(definitionsName, append(slices.Clone(whole[:cut]), make([]byte, len(whole)-cut)...))
		s, r, err := reopen(torn)
		if err != nil {
			require.ErrorContains(t, err, "definitions is damaged at offset", "cut at %d", cut)
			continue
		}
		require.True(t, slices.ContainsFunc(states, func(s []string) bool { return slices.Equal(s, saved(r.Definitions)) }))
		n++
		if r.CutBytes > 0 {
			require.Equal(t, definitionsName, r.CutFile)
			require.LessOrEqual(t, r.CutOffset+r.CutBytes, int64(cut))
		}
		defineNow(t, s, def("after", "all"))
		require.NoError(t, s.Close())
		s, again, err := reopen(torn)
		require.NoError(t, err)
		require.ElementsMatch(t, append(saved(r.Definitions), "after=all"), saved(again.Definitions))
		require.Zero(t, again.CutBytes)
		require.NoError(t, s.Close())
	}
	require.Greater(t, n, 100)
}

// A torn end must not be taken for changes later, when its place would be right.
func TestTornDefinitionsAreErased(t *testing.T) {
	disk, states := someDefinitions(t)
	f, err := scanDefinitions(disk)
	require.NoError(t, err)
	first := encodeBatch(f.id, f.end, f.end, []Definition{def("x", "1")})
	second := encodeBatch(f.id, f.end+int64(len(first))+batchHeader, f.end, []Definition{def("x", "2")})
	n := disk.names[definitionsName]
	copy(n.data[f.end:], first)
	copy(n.data[f.end+int64(len(first))+batchHeader:], second)
	n.data[f.end+batchHeader] ^= 1
	s, r, err := reopen(disk)
	require.NoError(t, err, "no mark says that it was synced")
	require.Equal(t, states[4], saved(r.Definitions))
	defineNow(t, s, def("x", "3"))
	require.NoError(t, s.Close())
	require.Equal(t, append(states[4], "x=3"), found(t, disk))
}

// A file of another version is refused and stays as it is.
func TestOtherVersionOfDefinitionsIsRefused(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	defineNow(t, s, def("x", "1"))
	require.NoError(t, s.Close())
	for _, version := range []byte{1, definitionsVersion + 1} {
		disk.names[definitionsName].data[8] = version
		_, _, err = reopen(disk)
		require.ErrorIs(t, err, errVersion)
	}
	disk.names[definitionsName].data[8] = 0
	_, _, err = reopen(disk)
	require.ErrorContains(t, err, "definitions is damaged at offset 8")
	disk.names[definitionsName].data[8] = definitionsVersion
	require.Equal(t, []string{"x=1"}, found(t, disk))
}

// On a full disk changes wait, and messages do not wait for them.
func TestDefinitionsOnFullDisk(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	defineNow(t, s, def("first", "1"))
	p, err := s.Put(text(1, 10), true, 1)
	require.NoError(t, err)
	disk.mu.Lock()
	disk.space = disk.used()
	disk.mu.Unlock()
	large := strings.Repeat("x", 2*tinyRoom)
	s.Define(def("large", large))
	require.ErrorIs(t, s.SyncDefinitions(), ErrFull)
	s.Define(def("next", "1"))
	require.ErrorIs(t, s.SyncDefinitions(), ErrFull)
	s.Enqueued([]Enqueue{{Queue: 1, Seq: 1, Pos: p, Durable: true}})
	commit(t, s)
	disk.mu.Lock()
	disk.space = 0
	disk.mu.Unlock()
	s.Define(def("first", "2"), def("next", "2"))
	require.NoError(t, s.SyncDefinitions())
	require.NoError(t, s.Close())
	// The maintainer may have written what waited before the last was defined, so the order
	// may differ.
	require.ElementsMatch(t, []string{"first=2", "large=" + large, "next=2"}, found(t, disk))
}

// What could not be written is written when there is space, even if nobody asks.
func TestDefinitionsAreTriedAgain(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	defineNow(t, s, def("first", "1"))
	disk.mu.Lock()
	disk.space = disk.used()
	disk.mu.Unlock()
	s.Define(def("large", strings.Repeat("x", 2*tinyRoom)))
	require.ErrorIs(t, s.SyncDefinitions(), ErrFull)
	require.ErrorIs(t, s.Unsaved(), ErrFull)
	s.Define(def("large", ""), def("first", ""))
	disk.mu.Lock()
	disk.space = 0
	disk.mu.Unlock()
	require.Eventually(t, func() bool { return s.Unsaved() == nil }, waitFor, tick)
	require.NoError(t, s.Close())
	require.Empty(t, found(t, disk))
}

// Synced waits for the disk even where Commit does not.
func TestSyncedWaitsForTheDisk(t *testing.T) {
	for _, mode := range []SyncMode{SyncGroup, SyncInterval, SyncNever} {
		disk := newCrashDisk()
		s, _, err := openOn(disk, still(mode), &Options{})
		require.NoError(t, err)
		p, err := s.Put(text(1, 10), true, 1)
		require.NoError(t, err)
		s.Enqueued([]Enqueue{{Queue: 1, Seq: 1, Pos: p, Durable: true}})
		done := make(chan error, 1)
		s.Synced(func(err error) { done <- err })
		require.NoError(t, <-done)
		again, r, err := reopen(disk.left(all, nil))
		require.NoError(t, err)
		require.Len(t, r.Queues, 1)
		require.NoError(t, again.Close())
		require.NoError(t, s.Close())
	}
}

// A failed sync is not tried again: the store ends.
func TestDefinitionsSyncFails(t *testing.T) {
	for _, what := range []string{"append", "whole"} {
		t.Run(what, func(t *testing.T) {
			disk := newCrashDisk()
			s, _, err := reopen(disk)
			require.NoError(t, err)
			if what == "append" {
				defineNow(t, s, def("first", "1"))
			}
			disk.mu.Lock()
			disk.failSyncs = 1
			disk.mu.Unlock()
			s.Define(def("lost", "1"))
			require.Error(t, s.SyncDefinitions())
			require.ErrorContains(t, <-s.Failed(), "save definitions: sync")
			s.Define(def("lost too", "1"))
			require.Error(t, s.SyncDefinitions())
			require.Error(t, s.Err())
			require.Error(t, s.Close())
		})
	}
}
