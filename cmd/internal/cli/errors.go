package cli

import "fmt"

// The exit codes of errors.
const (
	ExitUsage       = 2
	ExitUnhealthy   = 4 // the running Curfew is degraded or dead
	ExitUnconfirmed = 5 // the command has to be confirmed
)

// Exit is an error that has an exit code of its own.
type Exit struct {
	error
	Code int
}

func (e Exit) Unwrap() error { return e.error }

// Usage is a mistake in the command line, or in a file that it or the environment names.
func Usage(err error) error { return Exit{err, ExitUsage} }

// Usagef is Usage with this text.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// Exitf is an error with this text and this exit code.
func Exitf(code int, format string, args ...any) error {
	return Exit{fmt.Errorf(format, args...), code}
}
