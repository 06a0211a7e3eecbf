package commands

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
)

// binary is the command built once for all tests that run it as a process.
var binary = sync.OnceValues(func() (string, error) { return testenv.Curfew(scratch) })

// command prepares the built binary with a clean environment and the given variables, which are written without
// their prefix.
func command(t *testing.T, args []string, settings ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	cmd := exec.Command(path, args...)
	cmd.Dir = t.TempDir()
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "CURFEW_") && !strings.HasPrefix(entry, "RABBITMQ_DEFAULT_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	for _, s := range settings {
		cmd.Env = append(cmd.Env, "CURFEW_"+s)
	}
	return cmd
}

// runBinary runs the built binary to its end.
func runBinary(t *testing.T, args []string, settings ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := command(t, args, settings...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

// process is a running `curfew serve` that has printed its banner.
type process struct {
	*exec.Cmd
	banner []string
	stderr *bytes.Buffer // to be read after ended
	ended  chan struct{}
}

// startServe runs serve on free ports, in memory unless the settings say otherwise.
func startServe(t *testing.T, settings ...string) *process {
	t.Helper()
	log := new(bytes.Buffer)
	p := startServeTo(t, log, settings...)
	p.stderr = log
	return p
}

// startServeTo is startServe with a place for the log.
func startServeTo(t *testing.T, log io.Writer, settings ...string) *process {
	t.Helper()
	defaults := []string{"AMQP_ADDR=127.0.0.1:0", "HTTP_ADDR=127.0.0.1:0", "OPS_ADDR=127.0.0.1:0", "DATA_DIR="}
	p := &process{Cmd: command(t, []string{"serve"}, append(defaults, settings...)...), ended: make(chan struct{})}
	p.Stderr = log
	stdout, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		p.banner = append(p.banner, lines.Text())
		if strings.Contains(lines.Text(), "Server startup complete") {
			break
		}
	}
	go func() {
		defer close(p.ended)
		_ = p.Wait() // ProcessState has the result
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill() // it has ended, or the test has failed
		<-p.ended
	})
	require.NotEmpty(t, p.banner, "serve ended before it was up")
	return p
}

// line returns the text after a word of the banner.
func (p *process) line(t *testing.T, word string) string {
	t.Helper()
	for _, line := range p.banner {
		if value, ok := strings.CutPrefix(line, "  "+word+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no %s in %q", word, p.banner)
	return ""
}

// wait returns the exit code, -1 after a signal.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatal("serve did not end")
	}
	return p.ProcessState.ExitCode()
}
