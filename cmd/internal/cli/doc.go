// Package cli is what the commands share: how they find and call a running Curfew over HTTP (API, its management API; and /readyz), the checks of their arguments, shell
// completion, --watch, the kinds of errors that have an exit code of their own, and how a result is printed: as a table for people, or as JSON for
// programs (Printer).
//
// On a terminal a table is never wider than the screen, instants are shown as ages ("3m ago"), and verdicts have a color.
// Anywhere else a table is complete and has no colors, so that a script that reads it does not depend on a screen.
package cli
