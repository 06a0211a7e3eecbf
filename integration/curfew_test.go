package integration

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/testenv"
)

const (
	startLimit = 2 * time.Minute
	stopLimit  = time.Minute
)

// curfew is one running `curfew serve`.
type curfew struct {
	t         testing.TB
	url       string // amqp://...
	http      string // http://host:port
	ops       string // http://host:port
	pid       int
	log       *testenv.Log
	cmd       *exec.Cmd
	exited    chan struct{}
	waitError error // after exited
	stopped   bool
}

// startCurfew runs the release binary with the given settings ("REDIS_URL=redis://...") on top of free ports and an empty data folder, and
// returns once it is ready. It is stopped at the end of the test, which fails unless it ends cleanly.
func startCurfew(t testing.TB, settings ...string) *curfew {
	t.Helper()
	return startBinary(t, mustBinary(t, release), settings...)
}

func startBinary(t testing.TB, binary string, settings ...string) *curfew {
	t.Helper()
	amqpAddr, httpAddr, opsAddr := testenv.FreeAddr(), testenv.FreeAddr(), testenv.FreeAddr()
	defaults := []string{"AMQP_ADDR=" + amqpAddr, "HTTP_ADDR=" + httpAddr, "OPS_ADDR=" + opsAddr, "DATA_DIR=" + t.TempDir(), "LOG_LEVEL=info"}
	c := &curfew{
		t:      t,
		url:    "amqp://guest:guest@" + amqpAddr,
		http:   "http://" + httpAddr,
		ops:    "http://" + opsAddr,
		log:    new(testenv.Log),
		cmd:    exec.Command(binary, "serve"),
		exited: make(chan struct{}),
	}
	c.cmd.Env = environment(append(defaults, settings...))
	c.cmd.Dir = t.TempDir()
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // an aborted test leaves nothing behind
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.pid = c.cmd.Process.Pid
	go func() {
		c.waitError = c.cmd.Wait()
		close(c.exited)
	}()
	t.Cleanup(c.stop)
	eventually(t, startLimit, "curfew to be ready", func() bool { return c.alive() && c.ready() })
	return c
}

// environment is this process's own without any CURFEW_ variable, and the given settings with that prefix.
func environment(settings []string) []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CURFEW_") {
			env = append(env, variable)
		}
	}
	for _, setting := range settings {
		env = append(env, "CURFEW_"+setting)
	}
	return env
}

func (c *curfew) alive() bool {
	select {
	case <-c.exited:
		c.t.Fatalf("curfew has ended: %v\n%s", c.waitError, c.log)
		return false
	default:
		return true
	}
}

// stop ends the process as an operator would and holds it to a clean end.
func (c *curfew) stop() {
	if c.stopped {
		return
	}
	c.stopped = true
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Errorf("stop curfew: %v", err)
	}
	select {
	case <-c.exited:
	case <-time.After(stopLimit):
		c.t.Errorf("curfew did not stop within %v", stopLimit)
		c.cmd.Process.Signal(syscall.SIGQUIT)
		<-c.exited
	}
	if c.waitError != nil {
		c.t.Errorf("curfew did not end cleanly: %v", c.waitError)
	}
	for _, bad := range []string{"DATA RACE", "panic:"} {
		if strings.Contains(c.log.String(), bad) {
			c.t.Errorf("curfew's log has a %q", bad)
		}
	}
	if c.t.Failed() {
		c.t.Logf("curfew's log:\n%s", c.log.Tail(8000))
	}
}

// kill ends the process as a crash would.
func (c *curfew) kill() {
	c.stopped = true
	check(c.t, c.cmd.Process.Kill())
	<-c.exited
}

// dial connects with amqp091-go; the connection ends with the test.
func dial(t testing.TB, url string) *amqp091.Connection {
	t.Helper()
	conn, err := amqp091.Dial(url)
	if err != nil {
		t.Fatalf("dial %s: %v", url, err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func openChannel(t testing.TB, conn *amqp091.Connection) *amqp091.Channel {
	t.Helper()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatalf("open channel: %v", err)
	}
	return ch
}
