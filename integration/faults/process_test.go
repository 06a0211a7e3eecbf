package faults

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"curfew/integration/testenv"
)

const (
	startLimit = 2 * time.Minute
	stopLimit  = time.Minute
)

// process is one `curfew serve`.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	out    testenv.Log
	exited chan struct{}
}

// launch starts the binary on a data folder and on ports of its own choice, and does
// not wait for it. settings ("STORE_SYNC=group") come on top.
func launch(t testing.TB, dir string, settings ...string) *process {
	t.Helper()
	return launchUnder(t, "", dir, settings...)
}

// launchUnder does it in a shell that runs a command before ("ulimit -n 64").
func launchUnder(t testing.TB, limits, dir string, settings ...string) *process {
	t.Helper()
	path, err := built()
	check(t, err)
	p := &process{t: t, cmd: exec.Command("sh", "-c", limits+"\nexec \"$0\" serve", path), exited: make(chan struct{})}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CURFEW_") {
			p.cmd.Env = append(p.cmd.Env, variable)
		}
	}
	defaults := []string{"AMQP_ADDR=127.0.0.1:0", "HTTP_ADDR=127.0.0.1:0", "OPS_ADDR=127.0.0.1:0", "DATA_DIR=" + dir, "LOG_FORMAT=json"}
	for _, setting := range append(defaults, settings...) {
		p.cmd.Env = append(p.cmd.Env, "CURFEW_"+setting)
	}
	p.cmd.Dir = scratch
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // an aborted test leaves nothing behind
	check(t, p.cmd.Start())
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // the state tells
	}()
	t.Cleanup(p.kill)
	return p
}

// ready waits until clients are served.
func (p *process) ready() {
	p.t.Helper()
	eventually(p.t, startLimit, "curfew to be ready", func() bool {
		select {
		case <-p.exited:
			p.t.Fatalf("curfew has ended with code %d:\n%s", p.cmd.ProcessState.ExitCode(), p.out.String())
		default:
		}
		return strings.Contains(p.out.String(), "Server startup complete")
	})
}

// word is what the start block says after a name.
func (p *process) word(name string) string {
	for line := range strings.Lines(p.out.String()) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			return strings.TrimSuffix(words[1], ",")
		}
	}
	p.t.Fatalf("no %s in:\n%s", name, p.out.String())
	return ""
}

func (p *process) url() string { return p.word("AMQP") }

// address is the host and port of its url.
func (p *process) address() string {
	address, _, _ := strings.Cut(p.url()[strings.LastIndex(p.url(), "@")+1:], "/")
	return address
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	check(p.t, p.cmd.Process.Signal(s))
}

// kill ends it in the middle of whatever it does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.exited
}

// stop ends it as an operator would, and returns its exit code.
func (p *process) stop() int {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	return p.wait()
}

// wait returns the exit code of a process that ends by itself.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(stopLimit):
		p.t.Fatalf("curfew did not end within %v:\n%s", stopLimit, p.out.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

var opsClient = &http.Client{Timeout: 30 * time.Second}

// health is the body of /healthz.
func (p *process) health() string { return p.fetch(p.word("Health")) }

func (p *process) fetch(url string) string {
	p.t.Helper()
	resp, err := opsClient.Get(url)
	check(p.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	check(p.t, err)
	return string(body)
}

// metric sums the samples of a metric.
func (p *process) metric(name string) (sum float64) {
	p.t.Helper()
	found := false
	for line := range strings.Lines(p.fetch(p.word("Metrics"))) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if metric, _, _ := strings.Cut(series, "{"); metric != name {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		check(p.t, err)
		sum, found = sum+v, true
	}
	if !found {
		p.t.Fatalf("there is no metric %s", name)
	}
	return sum
}

// check and eventually are what tests wait and fail with.
var check, eventually = testenv.Check, testenv.Eventually
