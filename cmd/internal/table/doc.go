// Package table prints the result of a command: as a table for people, or as JSON for programs.
//
// On a terminal a table is never wider than the screen, instants are shown as ages ("3m ago"), and verdicts have a color.
// Anywhere else a table is complete and has no colors, so that a script that reads it does not depend on a screen.
package table
