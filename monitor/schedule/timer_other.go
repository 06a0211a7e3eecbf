//go:build !linux

package schedule

// PreciseTimer is the runtime's timer: no finer one is used on this system.
var PreciseTimer = runtimeTimer
