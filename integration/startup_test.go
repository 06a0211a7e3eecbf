package integration

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curfew/integration/testenv"
)

// TestRefusesToStart: what cannot work ends the process with a code other than zero and a text that names the variable or the port.
func TestRefusesToStart(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer busy.Close()
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o600))

	for _, c := range []struct {
		name     string
		settings []string
		names    []string
	}{
		{"unknown variable", []string{"AMQP_ADR=127.0.0.1:1"}, []string{"CURFEW_AMQP_ADR"}},
		{"not a truth value", []string{"MONITOR=perhaps"}, []string{"CURFEW_MONITOR", "perhaps"}},
		{"unknown log level", []string{"LOG_LEVEL=loud"}, []string{"CURFEW_LOG_LEVEL", "loud"}},
		{"unknown precedence", []string{"TTL_PRECEDENCE=max"}, []string{"CURFEW_TTL_PRECEDENCE", "max"}},
		{"not a Redis URL", []string{"REDIS_URL=http://localhost"}, []string{"CURFEW_REDIS_URL"}},
		{"not an address", []string{"AMQP_ADDR=5672"}, []string{"CURFEW_AMQP_ADDR", "5672"}},
		{"AMQP port taken", []string{"AMQP_ADDR=" + busy.Addr().String()}, []string{"CURFEW_AMQP_ADDR", busy.Addr().String()}},
		{"ops port taken", []string{"OPS_ADDR=" + busy.Addr().String()}, []string{"CURFEW_OPS_ADDR", busy.Addr().String()}},
		{"data folder is a file", []string{"DATA_DIR=" + file}, []string{"CURFEW_DATA_DIR", file}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, output := runToEnd(t, "serve", c.settings...)
			if code == 0 {
				t.Error("it ended with code 0")
			}
			for _, name := range c.names {
				if !strings.Contains(output, name) {
					t.Errorf("the output does not name %q:\n%s", name, output)
				}
			}
		})
	}
}

// TestOneProcessPerDataFolder: a second process on the same data folder is refused, and the first keeps working.
func TestOneProcessPerDataFolder(t *testing.T) {
	dir := t.TempDir()
	first := startCurfew(t, "DATA_DIR="+dir)
	code, output := runToEnd(t, "serve", "DATA_DIR="+dir)
	if code == 0 || !strings.Contains(output, dir) {
		t.Errorf("a second process on %s: code %d\n%s", dir, code, output)
	}
	newWitness(t, first).works(t)
}

// TestStartupBlock: the log says where to point a client and ends with the line that container tests of RabbitMQ wait for.
func TestStartupBlock(t *testing.T) {
	c := startCurfew(t)
	const last = "Server startup complete"
	eventually(t, startLimit, last, func() bool { return strings.Contains(c.log.String(), last) })
	before, _, _ := strings.Cut(c.log.String(), last)
	for _, want := range []string{"amqp://", c.url[strings.Index(c.url, "@")+1:], c.ops} {
		if !strings.Contains(before, want) {
			t.Errorf("no %q ahead of %q:\n%s", want, last, before)
		}
	}
}

// TestCommands: the commands beside serve answer without a server.
func TestCommands(t *testing.T) {
	if code, output := runToEnd(t, "version"); code != 0 || !strings.Contains(output, "v1.2.3") {
		t.Errorf("version: code %d\n%s", code, output)
	}
	if code, output := runToEnd(t, "config"); code != 0 || !strings.Contains(output, "CURFEW_AMQP_ADDR") {
		t.Errorf("config: code %d\n%s", code, output)
	}
	if code, output := runToEnd(t, "healthcheck", "OPS_ADDR="+testenv.FreeAddr()); code == 0 {
		t.Errorf("healthcheck without a server: code 0\n%s", output)
	}
	if code, output := runToEnd(t, "serv"); code == 0 {
		t.Errorf("an unknown command: code 0\n%s", output)
	}
}

// runToEnd runs a command that should end by itself and returns its exit code and output.
func runToEnd(t *testing.T, command string, settings ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, mustBinary(t, release), command)
	defaults := []string{"AMQP_ADDR=" + testenv.FreeAddr(), "HTTP_ADDR=127.0.0.1:0", "OPS_ADDR=" + testenv.FreeAddr(), "DATA_DIR=" + t.TempDir()}
	if command != "serve" {
		defaults = nil
	}
	cmd.Env = environment(append(defaults, settings...))
	cmd.Dir = t.TempDir()
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%s did not end:\n%s", command, &output)
	}
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		return exit.ExitCode(), output.String()
	}
	check(t, err)
	return 0, output.String()
}
