//go:build !linux

package testenv

import (
	"testing"
	"time"
)

var began = time.Now()

// threadTime is as near as it gets to the processor time that this thread has used.
func threadTime(testing.TB) time.Duration { return time.Since(began) }
