package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
	"curfew/monitor/rabbitmq"
	"curfew/monitor/rabbitmq/observe"
)

// TestServeRabbitMQ: serve with CURFEW_PRIMARY_URL comes up without a broker, even while the RabbitMQ is away, and says what is unused.
func TestServeRabbitMQ(t *testing.T) {
	setenv(t)
	dir := t.TempDir()
	password := filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(password, []byte("other\n"), 0o600))
	web := testenv.FreeAddr()
	p := startServe(t, "PRIMARY_URL=amqp://ann:s3cret@"+testenv.FreeAddr()+"/shop", "WATCH=keep:retry-*", "HTTP_ADDR="+web, "PASSWORD=other", "STORE_SYNC=never")
	require.Contains(t, p.line(t, "RabbitMQ"), "amqp://ann@")
	require.Contains(t, p.line(t, "Leases"), "only one Curfew may keep these queues")
	for _, line := range p.banner {
		require.NotContains(t, line, "AMQP ")
		require.NotContains(t, line, "s3cret")
	}
	flags := []string{"--url", "http://" + web, "--user", "guest", "--password-file", password}
	code, out, errOut := runCommand(t, append([]string{"rabbitmq", "status"}, flags...)...)
	require.Zero(t, code, errOut)
	require.Contains(t, out, "QUEUE")
	require.Contains(t, errOut, "observes: ")
	code, out, errOut = runCommand(t, append([]string{"rabbitmq", "status", "-o", "json"}, flags...)...)
	require.Zero(t, code, errOut)
	var s rabbitmq.Status
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	require.Equal(t, "shop", s.VHost)
	require.Equal(t, "none", s.Redis)
	code, _, errOut = runCommand(t, append([]string{"rabbitmq", "resume"}, flags...)...)
	require.Equal(t, exitNotFound, code)
	require.Contains(t, errOut, "nothing is paused")
	_, out, _ = runCommand(t, append([]string{"status"}, flags...)...)
	require.Contains(t, out, "curfew rabbitmq status")
	require.NotContains(t, out, "publishers")
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Zero(t, p.wait(t), p.stderr)
	require.Contains(t, p.stderr.String(), "CURFEW_STORE_SYNC", "it is said to be unused")
	require.NotContains(t, p.stderr.String(), "s3cret")
}

func TestRabbitMQRow(t *testing.T) {
	five, ten := 5.0, 10.0
	for _, c := range []struct {
		q    rabbitmq.Queue
		want []string
	}{
		{rabbitmq.Queue{Queue: "a", Type: "quorum", Mode: "keep", State: "keeping", Reason: "no other consumer", Keeper: "one", Here: true, Held: 3, P50: &five, P99: &ten},
			[]string{"a", "quorum", "keep", "keeping", "one", "3", "-", "<= 5 ms / 10 ms", "-", "no other consumer"}},
		{rabbitmq.Queue{Queue: "far", Mode: "keep", State: "keeping", Keeper: "two", Reported: true, Held: 4},
			[]string{"far", "-", "keep", "keeping", "two", "4", "-", "-", "-", "-"}},
		{rabbitmq.Queue{Queue: "silent", Mode: "keep", State: "observing", Keeper: "two"},
			[]string{"silent", "-", "keep", "observing", "two", "-", "-", "-", "-", "-"}},
		{rabbitmq.Queue{Queue: "b", Mode: "keep", State: "refused", Reason: "No.", Instead: "Do this.", P50: &five},
			[]string{"b", "-", "keep", "refused", "-", "-", "-", "<= 5 ms / more", "-", "No. Do this."}},
		{rabbitmq.Queue{Queue: "c", Mode: "observe", State: "observed", Observed: &observe.State{Tapped: true, Overdue: 2, Counts: observe.Counts{Missed: 7}}},
			[]string{"c", "-", "observe", "observed", "-", "-", "-", "-", "7 (2 still there)", "-"}},
		{rabbitmq.Queue{Queue: "d", Mode: "observe", State: "observed", Observed: &observe.State{}},
			[]string{"d", "-", "observe", "observed", "-", "-", "-", "-", "-", "-"}},
	} {
		assert.Equal(t, c.want, rabbitmqRow(&c.q))
	}
	due := rabbitmqRow(&rabbitmq.Queue{NextDue: time.Now().Add(time.Hour).UnixMilli()})[6]
	assert.Regexp(t, `^in (1h|59m)`, due)
}
