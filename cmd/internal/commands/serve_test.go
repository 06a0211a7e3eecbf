package commands

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServeSaysWhereItIs(t *testing.T) {
	p := startServe(t)
	assert.Less(t, len(p.banner), 15)
	assert.Equal(t, "Curfew v1.2.3", p.banner[0])
	assert.Contains(t, p.banner[len(p.banner)-1], "Server startup complete")
	assert.Regexp(t, `^amqp://guest:guest@127\.0\.0\.1:\d+/$`, p.line(t, "AMQP"))
	assert.Contains(t, p.line(t, "Schedule"), "embedded")
	assert.Contains(t, p.line(t, "Store"), "memory only")
	assert.Contains(t, p.line(t, "Monitor"), "on")
	assert.Equal(t, "curfew demo --against "+strings.TrimSuffix(p.line(t, "Dashboard"), "/"), p.line(t, "Try"))

	conn, err := amqp091.Dial(p.line(t, "AMQP"))
	require.NoError(t, err)
	require.NoError(t, conn.Close())

	metrics := p.line(t, "Metrics")
	assert.Contains(t, fetch(t, metrics), `curfew_build_info{`)
	var h healthAnswer
	require.NoError(t, json.Unmarshal([]byte(fetch(t, strings.Replace(metrics, "/metrics", "/healthz", 1))), &h))
	assert.Equal(t, "ok", h.Status)
	assert.Equal(t, "ready", h.Phase)

	code, _, errOut := runBinary(t, []string{"healthcheck"}, "OPS_ADDR="+strings.TrimSuffix(strings.TrimPrefix(metrics, "http://"), "/metrics"))
	assert.Zero(t, code, errOut)
}

// healthAnswer is what /healthz answers.
type healthAnswer struct {
	Status, Phase string
	Parts         map[string]any
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

// TestServeSaysThatTTLIsOff: in the log, in the banner and in /healthz.
func TestServeSaysThatTTLIsOff(t *testing.T) {
	p := startServe(t, "TTL=off")
	assert.Equal(t, "nothing to do: no message expires (CURFEW_TTL=off)", p.line(t, "Monitor"))
	var h healthAnswer
	require.NoError(t, json.Unmarshal([]byte(fetch(t, strings.Replace(p.line(t, "Metrics"), "/metrics", "/healthz", 1))), &h))
	assert.Equal(t, "ok", h.Status)
	assert.Equal(t, "off: no message expires (CURFEW_TTL=off)", h.Parts["ttl"])

	conn, err := amqp091.Dial(p.line(t, "AMQP"))
	require.NoError(t, err)
	defer conn.Close()
	ch, err := conn.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare("q", false, false, true, false, amqp091.Table{"x-message-ttl": 0})
	require.NoError(t, err)
	require.NoError(t, ch.PublishWithContext(t.Context(), "", "q", false, false, amqp091.Publishing{Expiration: "0"}))
	_, ok, err := ch.Get("q", true)
	require.NoError(t, err)
	assert.True(t, ok)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	assert.Zero(t, p.wait(t))
	assert.Contains(t, p.stderr.String(), "no message expires: CURFEW_TTL=off")
}

func TestServeStopsGracefully(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p := startServe(t)
		conn, err := amqp091.Dial(p.line(t, "AMQP"))
		require.NoError(t, err)
		closed := conn.NotifyClose(make(chan *amqp091.Error, 1))
		require.NoError(t, p.Process.Signal(sig))
		reason := <-closed
		require.NotNil(t, reason)
		assert.Equal(t, amqp091.ConnectionForced, reason.Code)
		assert.Contains(t, reason.Reason, "CONNECTION_FORCED - broker forced connection closure")
		assert.Zero(t, p.wait(t), "after %v: %s", sig, p.stderr)
	}
}

// TestServeReloadsAlertRules: SIGHUP reads the file again, even if it is the same, and does not end the process.
func TestServeReloadsAlertRules(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(rules, []byte("rules: []"), 0o600))
	cmd := command(t, []string{"serve"}, "AMQP_ADDR=127.0.0.1:0", "HTTP_ADDR=127.0.0.1:0", "OPS_ADDR=127.0.0.1:0", "DATA_DIR=", "ALERTS="+rules)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	require.NoError(t, cmd.Start())
	defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	lines := bufio.NewScanner(output)
	await := func(text string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		assert.Fail(t, "it ended and did not print: "+text)
	}
	await("alert rules are in force")
	await("Server startup complete")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	await("alert rules are in force")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	await("stopped")
	require.NoError(t, cmd.Wait())
}

// deafConn is a client that stops reading, so that it does not answer connection.close.
type deafConn struct {
	net.Conn
	deaf   atomic.Bool
	closed chan struct{}
}

func (c *deafConn) Read(b []byte) (int, error) {
	if c.deaf.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(b)
	if c.deaf.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func TestServeSecondSignalEndsAtOnce(t *testing.T) {
	p := startServe(t)
	deaf := &deafConn{closed: make(chan struct{})}
	conn, err := amqp091.DialConfig(p.line(t, "AMQP"), amqp091.Config{Dial: func(network, addr string) (nc net.Conn, err error) {
		deaf.Conn, err = net.Dial(network, addr)
		return deaf, err
	}})
	require.NoError(t, err)
	deaf.deaf.Store(true)
	closed := conn.NotifyClose(make(chan *amqp091.Error, 1))
	t.Cleanup(func() {
		close(deaf.closed)
		deaf.Conn.Close()
		<-closed
	})

	readyz := strings.Replace(p.line(t, "Metrics"), "/metrics", "/readyz", 1)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool { return strings.Contains(fetch(t, readyz), "stopping") }, time.Minute, 5*time.Millisecond)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, -1, p.wait(t), "it has not ended by itself, once the deaf client is given up")
	assert.Equal(t, syscall.SIGTERM, p.ProcessState.Sys().(syscall.WaitStatus).Signal())
}

// TestServeAborted: as systemd's watchdog does it. A wrong command line ends with another code.
func TestServeAborted(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGABRT, syscall.SIGQUIT} {
		p := startServe(t)
		require.NoError(t, p.Process.Signal(s))
		assert.Equal(t, exitAborted, p.wait(t))
		assert.Contains(t, p.stderr.String(), "commands.runUntilSignal(", "the stacks, from the first goroutine on")
		assert.Contains(t, p.stderr.String(), s.String())
	}
}

func TestServeOutlivesTheReaderOfItsLog(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	dir := t.TempDir()
	p := startServeTo(t, write, "DATA_DIR="+dir)
	write.Close()
	read.Close()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM)) // which is logged
	assert.Zero(t, p.wait(t))
	assert.FileExists(t, filepath.Join(dir, "stopped"))
}

func TestServeBusyPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, c := range []struct{ variable, other string }{{"AMQP_ADDR", "OPS_ADDR"}, {"OPS_ADDR", "AMQP_ADDR"}, {"HTTP_ADDR", "AMQP_ADDR"}} {
		code, out, errOut := runBinary(t, []string{"serve"}, "DATA_DIR=", c.other+"=127.0.0.1:0", c.variable+"="+taken.Addr().String())
		assert.Equal(t, exitFailed, code)
		assert.Contains(t, errOut, "CURFEW_"+c.variable+": "+taken.Addr().String()+" is in use by another process")
		assert.NotContains(t, out, "Server startup complete")
	}
}

func TestServeRefusesWrongEnvironment(t *testing.T) {
	code, out, errOut := runBinary(t, []string{"serve"}, "TTL_PRECEDENCE=max", "AMQP_ADRESS=:1")
	assert.Equal(t, exitUsage, code)
	assert.Empty(t, out)
	assert.Contains(t, errOut, `CURFEW_TTL_PRECEDENCE: "max" is invalid: want min or message`)
	assert.Contains(t, errOut, "CURFEW_AMQP_ADRESS: there is no such variable; did you mean CURFEW_AMQP_ADDR?")
}

func TestServeNeverShowsSecrets(t *testing.T) {
	p := startServe(t, "USER=ann", "PASSWORD=s3cret", "REDIS_URL=redis://:s3cret@127.0.0.1:1/3",
		"ALERT_URLS=webhook+http://127.0.0.1:1/s3cret,ntfy://ann:s3cret@127.0.0.1:1/s3cret,slack://hook:TAAAAAAAA-BBBBBBBBB-s3crets3crets3crets3cret@webhook", "LOG_LEVEL=debug")
	assert.Contains(t, p.line(t, "AMQP"), "amqp://ann:PASSWORD@127.0.0.1:")
	assert.Contains(t, p.line(t, "Schedule"), "redis://127.0.0.1:1/3")
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	assert.Zero(t, p.wait(t), p.stderr)
	assert.NotContains(t, strings.Join(p.banner, "\n")+p.stderr.String(), "s3cret")
}

func TestServeWithoutMonitor(t *testing.T) {
	p := startServe(t, "MONITOR=false", "DATA_DIR=data")
	assert.Equal(t, "off: messages expire lazily: when a delivery or a get meets them, and at a start", p.line(t, "Monitor"))
	assert.Equal(t, "none", p.line(t, "Schedule"))
	assert.Contains(t, p.line(t, "Store"), p.Dir+"/data (sync: group)")
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	assert.Zero(t, p.wait(t), p.stderr)
}

func TestServeKeepsWhatItConfirmed(t *testing.T) {
	dir := "DATA_DIR=" + t.TempDir()
	p := startServe(t, dir)
	assert.Contains(t, p.line(t, "Store"), ", a new folder: no messages")
	conn, err := amqp091.Dial(p.line(t, "AMQP"))
	require.NoError(t, err)
	ch, err := conn.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare("q", true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	confirm, err := ch.PublishWithDeferredConfirm("", "q", false, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent})
	require.NoError(t, err)
	require.True(t, confirm.Wait())
	assert.Regexp(t, `curfew_journal_fsync_duration_seconds_count [1-9]`, fetch(t, p.line(t, "Metrics")))

	code, _, errOut := runBinary(t, []string{"serve"}, dir, "AMQP_ADDR=127.0.0.1:0", "HTTP_ADDR=127.0.0.1:0", "OPS_ADDR=127.0.0.1:0")
	assert.Equal(t, exitFailed, code, "the folder is in use")
	assert.Contains(t, errOut, "CURFEW_DATA_DIR")

	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Zero(t, p.wait(t), p.stderr)
	assert.Contains(t, startServe(t, dir).line(t, "Store"), ", 1 messages recovered")
}

func TestServeLogFormats(t *testing.T) {
	for format, begin := range map[string]string{"json": "{", "console": "20", "auto": "{"} {
		p := startServe(t, "LOG_FORMAT="+format)
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		require.Zero(t, p.wait(t), p.stderr)
		for line := range strings.Lines(p.stderr.String()) {
			assert.True(t, strings.HasPrefix(line, begin), "%s: %s", format, line)
		}
		assert.Contains(t, p.stderr.String(), "stopped")
	}
}

// TestServeNotifiesSystemd: the command as the unit starts it.
func TestServeNotifiesSystemd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	startServe(t)
	require.NoError(t, socket.SetReadDeadline(time.Now().Add(time.Minute)))
	text := make([]byte, 256)
	n, err := socket.Read(text)
	require.NoError(t, err)
	assert.Equal(t, "READY=1", string(text[:n]))
}
