//go:build !linux

package node

import (
	"testing"
	"time"
)

var began = time.Now()

// threadTime is as near as it gets to the processor time that this thread has used.
func threadTime(*testing.T) time.Duration { return time.Since(began) }
