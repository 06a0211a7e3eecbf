//go:build !linux

package monitor

// PreciseTimer returns the runtime's timer: this system has none that is finer.
func PreciseTimer() (Timer, error) { return newRuntimeTimer(), nil }
