package testenv

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRedisLifeCycle(t *testing.T) {
	r := StartRedis(t)
	ctx := context.Background()
	r.Do("SET", "k", "v")
	r.Pause()
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	require.Error(t, r.Client.WithTimeout(20*time.Millisecond).Get(short, "k").Err())
	r.Resume()
	require.Equal(t, "v", r.Do("GET", "k"))
	r.Restart()
	require.Nil(t, r.Do("GET", "k"), "nothing is written to disk")
	r.Kill()
	require.Error(t, r.Client.Ping(ctx).Err())
}
