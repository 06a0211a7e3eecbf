package cli

import "fmt"

// UsageError is a mistake in the command line, or in a file that it or the environment names.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Usage makes err a UsageError.
func Usage(err error) error { return UsageError{err} }

// Usagef is a UsageError with this text.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// UnhealthyError means that the running Curfew is degraded or dead.
type UnhealthyError struct{ error }

// Unhealthy makes err an UnhealthyError.
func Unhealthy(err error) error { return UnhealthyError{err} }

// ConfirmationError means that the command has to be confirmed.
type ConfirmationError struct{ error }

// Unconfirmedf is a ConfirmationError with this text.
func Unconfirmedf(format string, args ...any) error {
	return ConfirmationError{fmt.Errorf(format, args...)}
}
