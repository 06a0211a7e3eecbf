// Command curfew runs the broker and its deadline monitor in one process, and has the tools to look after it:
// see package commands.
package main

import (
	"context"
	"net/http"
	"os"
	"time"

	"curfew/cmd/internal/commands"
)

// version is set by the linker for a release.
var version = ""

func main() {
	// Some alert sinks use the default client, which has no timeout of its own.
	http.DefaultClient.Timeout = 30 * time.Second
	os.Exit(commands.Run(context.Background(), version, os.Args[1:], os.Stdout, os.Stderr))
}
