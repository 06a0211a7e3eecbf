package store

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDefinitions(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	s, _ := openDisk(t, o)
	b, err := s.Definitions()
	require.NoError(t, err)
	require.Nil(t, b)
	for _, text := range []string{"first", "", "the last"} {
		require.NoError(t, s.SaveDefinitions([]byte(text)))
		b, err = s.Definitions()
		require.NoError(t, err)
		require.Equal(t, text, string(b))
	}
	require.NoError(t, s.Close())
	s, _ = openDisk(t, o)
	b, err = s.Definitions()
	require.NoError(t, err)
	require.Equal(t, "the last", string(b))
	require.NoError(t, s.Close())

	m := openMemory(t, Options{})
	require.NoError(t, m.SaveDefinitions([]byte("x")))
	b, err = m.Definitions()
	require.NoError(t, err)
	require.Equal(t, "x", string(b))
}

// Wherever the crash is, the old or the new definitions are there, whole; once
// saved, the new ones.
func TestDefinitionsSurviveCrashes(t *testing.T) {
	before, after := []byte("before"), make([]byte, 5000)
	for crashAt := 1; ; crashAt++ {
		for seed := range uint64(20) {
			disk := newCrashDisk()
			require.NoError(t, writeDefinitions(disk, before))
			disk.ops, disk.crashAt = 0, crashAt
			err := writeDefinitions(disk, after)
			rng := rand.New(rand.NewPCG(seed, 0))
			b, readErr := readDefinitions(disk.afterCrash(rng, float64(seed%3)/2))
			require.NoError(t, readErr)
			if err == nil {
				require.Equal(t, after, b)
				return
			}
			require.Contains(t, [][]byte{before, after}, b)
		}
	}
}

func TestDamagedDefinitionsAreRefused(t *testing.T) {
	disk := newCrashDisk()
	require.NoError(t, writeDefinitions(disk, []byte("vhosts")))
	n := disk.names[definitionsName]
	for i := range n.data {
		n.data[i] ^= 4
		_, err := readDefinitions(disk)
		require.ErrorContains(t, err, "definitions", "byte %d", i)
		n.data[i] ^= 4
	}
	n.data = n.data[:10]
	_, err := readDefinitions(disk)
	require.Error(t, err)
	n.data = []byte(definitionsMagic + "\x02\x00\x00\x00....")
	_, err = readDefinitions(disk)
	require.ErrorIs(t, err, ErrVersion)
}
