//go:build !linux

package schedule

// PreciseTimer returns the runtime's timer: no finer one is used on this system.
func PreciseTimer() (Timer, error) { return newRuntimeTimer(), nil }
