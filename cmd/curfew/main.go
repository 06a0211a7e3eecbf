// Command curfew runs the broker and its deadline monitor in one process, and has the tools to operate it:
// see package commands.
package main

import (
	"context"
	"net/http"
	"os"
	"time"

	"curfew/cmd/internal/commands"
	"curfew/cmd/internal/node"
)

// Set by the linker for a release: its version, the commit it was built from, and when that was made (RFC 3339).
var version, commit, commitTime string

func main() {
	// Some alert sinks use the default client, which has no timeout of its own.
	http.DefaultClient.Timeout = 30 * time.Second
	build := node.Build{Version: version, Revision: commit, CommitTime: commitTime}
	os.Exit(commands.Run(context.Background(), build, os.Args[1:], os.Stdout, os.Stderr))
}
