// Package contexts keeps the addresses of Curfews under names, each with the user to call it as, in a file in the user's
// configuration folder. The file has no passwords: a context names the file or the command that a password comes from.
package contexts
