package redisstore

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/scheduler"
	"curfew/scheduler/storetest"
)

func TestStore(t *testing.T) {
	server := storetest.StartRedis(t)
	n := 0
	storetest.Run(t, func(t *testing.T) scheduler.Store {
		n++
		return openStore(t, Options{URL: server.URL, Instance: strconv.Itoa(n)})
	})
}

// openStore returns a store that has begun.
func openStore(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	require.NoError(t, s.Begin(context.Background()))
	return s
}
