// Package cli is what the commands share: how they find and call a running Curfew (API), the checks of their arguments, shell
// completion, --watch, and the kinds of errors that have an exit code of their own.
package cli
