package broker_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/store"
)

// A disk without a free byte is known, and not taken for one that nobody looks at.
func TestSignsOfAFullDisk(t *testing.T) {
	full := func(string) (free, all int64, err error) { return 0, 8 << 20, nil }
	x := openTestBroker(t, broker.Options{Store: store.Options{Dir: t.TempDir()}, DiskFreeLimit: 1 << 20, DiskSpace: full})
	s := broker.SignsOf(x.b)
	assert.Equal(t, [2]int64{0, 1 << 19}, [2]int64{s.DiskFree, s.DiskLimit}, "the limit in force: a sixteenth of a small disk")
	require.NoError(t, x.b.Close())
}
