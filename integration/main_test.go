package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
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
	release = sync.OnceValues(func() (string, error) {
		return build("curfew", []string{"CGO_ENABLED=0"}, "-trimpath", "-ldflags", "-s -w -X main.version=v0.0.0-test")
	})
	raced = sync.OnceValues(func() (string, error) {
		return build("curfew-race", []string{"CGO_ENABLED=1"}, "-race", "-trimpath")
	})
)

func build(name string, env []string, flags ...string) (string, error) {
	binary := filepath.Join(scratch, name)
	cmd := exec.Command("go", append(append([]string{"build", "-o", binary}, flags...), "./cmd/curfew")...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return binary, nil
}

func mustBinary(t testing.TB, build func() (string, error)) string {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}
