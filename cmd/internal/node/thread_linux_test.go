package node

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// threadTime is the processor time that this thread has used.
func threadTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_THREAD, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
