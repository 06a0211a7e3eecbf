// Package client calls a running Curfew over HTTP, for the commands: its management API and /readyz.
package client
