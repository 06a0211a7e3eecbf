package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

// scratch is a folder for the built binary.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "curfew-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(scratch)
		os.Exit(code)
	}))
}

// runCommand runs one command line in this process.
func runCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), args, &out, &errOut)
	return code, out.String(), errOut.String()
}

func TestVersion(t *testing.T) {
	code, out, _ := runCommand(t, "version")
	assert.Zero(t, code)
	assert.Regexp(t, `^curfew \S+ `+runtime.Version()+` \S+\n$`, out)
}

func TestWrongCommandLines(t *testing.T) {
	for text, args := range map[string][]string{
		`unknown command "srve"`:     {"srve"},
		"unknown flag: --port":       {"serve", "--port", "1"},
		`version takes no arguments`: {"version", "now"},
		`unknown command "check"`:    {"store", "check"},
		"store verify takes one":     {"store", "verify", "a", "b"},
		"unknown flag: --json":       {"--json"},
	} {
		code, _, errOut := runCommand(t, args...)
		assert.Equal(t, exitUsage, code, "%v", args)
		assert.Contains(t, errOut, text)
	}
}
