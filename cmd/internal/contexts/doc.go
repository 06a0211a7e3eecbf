// Package contexts keeps named places where a Curfew runs, each with the user to call it as, in a file of the user's
// configuration folder. The file has no passwords: a context names the file or the command that a password comes from.
package contexts
