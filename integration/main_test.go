package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"curfew/integration/testenv"
)

// scratch holds the binaries built for the run and the shared RabbitMQ's files.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "curfew-integration-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	stopSharedRabbitMQ()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// release is the binary users run; raced is the same with the race detector (cheap here: `go test -race` has compiled its parts).
var (
	release = sync.OnceValues(func() (string, error) { return testenv.Curfew(scratch) })
	raced   = sync.OnceValues(func() (string, error) {
		binary := filepath.Join(scratch, "curfew-race")
		cmd := exec.Command("go", "build", "-o", binary, "-race", "-trimpath", "./cmd/curfew")
		cmd.Dir = ".."
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build with the race detector: %w\n%s", err, out)
		}
		return binary, nil
	})
)

func mustBinary(t testing.TB, build func() (string, error)) string {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}
