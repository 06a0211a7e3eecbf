package testenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Redis is a redis-server that a test has for itself on 127.0.0.1, killed when the test ends.
// Its methods fail the test when they cannot do what they say; call them from the
// test's goroutine.
type Redis struct {
	// URL is "redis://127.0.0.1:<port>"; it stays the same through Restart.
	URL string
	// Addr is "127.0.0.1:<port>".
	Addr string
	// Client is connected to it, to inspect and change what it holds.
	Client *redis.Client

	t    testing.TB
	args []string
	cmd  *exec.Cmd
	gone chan struct{} // closed when cmd has ended
}

// StartRedis starts redis-server on a free port and returns when it answers. args
// are further arguments, such as "--appendonly", "yes"; without them nothing is
// written to disk, so Restart comes back empty.
func StartRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a Redis server, and this is a short run: `make test` has one")
	}
	r := &Redis{t: t, args: append([]string{"--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir()}, args...)}
	t.Cleanup(r.Kill)
	for attempt := 1; ; attempt++ {
		r.Addr = FreeAddr()
		err := r.start()
		if err == nil {
			break
		}
		if attempt == 5 || !strings.Contains(err.Error(), "in use") {
			t.Fatal(err)
		}
	}
	r.URL = "redis://" + r.Addr
	r.Client = redis.NewClient(&redis.Options{
		Addr:                     r.Addr,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = r.Client.Close() })
	return r
}

func (r *Redis) start() error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("testenv: %w; install it: apt-get install redis-server", err)
	}
	_, port, _ := net.SplitHostPort(r.Addr)
	r.cmd = exec.Command(path, append([]string{"--port", port}, r.args...)...)
	r.cmd.SysProcAttr = endWithParent()
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	r.cmd.Stderr = r.cmd.Stdout
	if err := r.cmd.Start(); err != nil {
		return fmt.Errorf("testenv: start redis-server: %w", err)
	}
	log, ready := waitReady(out)
	cmd, gone := r.cmd, make(chan struct{})
	r.gone = gone
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}()
	if !ready {
		r.Kill()
		return fmt.Errorf("testenv: redis-server did not start:\n%s", log)
	}
	return nil
}

// waitReady reads the server's log up to the line that says it is ready, or to its end.
func waitReady(out io.Reader) (log string, ready bool) {
	var b strings.Builder
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadString('\n')
		b.WriteString(line)
		if strings.Contains(line, "Ready to accept connections") {
			return b.String(), true
		}
		if err != nil {
			return b.String(), false
		}
	}
}

// Kill ends the server at once, as kill -9 does; killing it again does nothing.
func (r *Redis) Kill() {
	if r.cmd == nil || r.cmd.Process == nil {
		return
	}
	_ = r.cmd.Process.Kill()
	<-r.gone
	r.cmd = nil
}

// Restart starts the server again on the same port, killing it first if need be.
func (r *Redis) Restart() {
	r.t.Helper()
	r.Kill()
	if err := r.start(); err != nil {
		r.t.Fatal(err)
	}
}

// Pause stops the server without closing its connections (SIGSTOP): requests go
// unanswered until Resume.
func (r *Redis) Pause() { r.t.Helper(); r.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (r *Redis) Resume() { r.t.Helper(); r.signal(syscall.SIGCONT) }

func (r *Redis) signal(s syscall.Signal) {
	r.t.Helper()
	if r.cmd == nil {
		r.t.Fatal("testenv: redis-server is not running")
	}
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// Do sends a command and returns its reply, nil for none; an error reply fails the
// test.
func (r *Redis) Do(args ...any) any {
	r.t.Helper()
	reply, err := r.Client.Do(context.Background(), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		r.t.Fatalf("testenv: redis %v: %v", args, err)
	}
	return reply
}

// Port returns the port it listens on.
func (r *Redis) Port() int {
	_, text, _ := net.SplitHostPort(r.Addr)
	port, _ := strconv.Atoi(text)
	return port
}

// Limited adds a user with these rights only, and returns the URL for it.
func (r *Redis) Limited(rule string) (url string) {
	r.t.Helper()
	args := []any{"ACL", "SETUSER", "curfew", "on", ">secret"}
	for _, word := range strings.Fields(rule) {
		args = append(args, word)
	}
	r.Do(args...)
	return strings.Replace(r.URL, "redis://", "redis://curfew:secret@", 1)
}

// StartRedisCluster starts a Redis Cluster of one node, which refuses what would not work on several.
func StartRedisCluster(t testing.TB) *Redis {
	t.Helper()
	_, bus, _ := net.SplitHostPort(FreeAddr())
	r := StartRedis(t, "--cluster-enabled", "yes", "--cluster-port", bus)
	r.Do("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if info, _ := r.Do("CLUSTER", "INFO").(string); strings.Contains(info, "cluster_state:ok") {
			return r
		}
		if time.Since(start) > time.Minute {
			t.Fatal("testenv: the Redis Cluster is not ready after a minute")
		}
	}
}
