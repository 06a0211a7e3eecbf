package commands

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/cli"
	"curfew/integration/testenv"
	"curfew/monitor/rabbitmq"
	"curfew/monitor/rabbitmq/cluster"
)

// TestRabbitMQPlanChecksItsSettings before it asks RabbitMQ.
func TestRabbitMQPlanChecksItsSettings(t *testing.T) {
	for text, settings := range map[string][]string{
		"CURFEW_PRIMARY_URL is not set":            {"CURFEW_WATCH=a"},
		"CURFEW_PRIMARY_URL: the value (a secret":  {"CURFEW_PRIMARY_URL=ann:s3cret@h"},
		"CURFEW_WATCH: open /does/not/exist":       {"CURFEW_PRIMARY_URL=amqp://h", "CURFEW_WATCH=/does/not/exist"},
		"did you mean CURFEW_PRIMARY_URL":          {"CURFEW_PRIMARY_UR=amqp://h"},
		`CURFEW_WATCH: "hold:*" is invalid`:        {"CURFEW_PRIMARY_URL=amqp://h", "CURFEW_WATCH=hold:*"},
		"management API has to begin with http://": {"CURFEW_PRIMARY_URL=amqp://h", "CURFEW_PRIMARY_API_URL=ann:s3cret@h"},
	} {
		setenv(t, settings...)
		code, out, errOut := runCommand(t, "rabbitmq", "plan")
		assert.Equal(t, exitUsage, code, text)
		assert.Contains(t, errOut, text)
		assert.NotContains(t, out+errOut, "s3cret")
	}
	setenv(t, "CURFEW_PRIMARY_URL=amqp://ann:s3cret@"+testenv.FreeAddr())
	code, _, errOut := runCommand(t, "rabbitmq", "plan")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errOut, "connect to RabbitMQ")
	assert.NotContains(t, errOut, "s3cret")
}

// TestRulesWithoutRabbitMQ: rules for RabbitMQ are a mistake where none is named, for whoever serves. A command that asks a running Curfew, in
// the same shell, does not look at them.
func TestRulesWithoutRabbitMQ(t *testing.T) {
	for _, rules := range []string{"CURFEW_WATCH=keep:retry", "CURFEW_WATCH=/does/not/exist", "CURFEW_PRIMARY_API_URL=http://h:15672"} {
		name, value, _ := strings.Cut(rules, "=")
		setenv(t, rules)
		for _, command := range []string{"serve", "config"} {
			code, _, errOut := runCommand(t, command)
			assert.Equal(t, exitUsage, code, command)
			assert.Contains(t, errOut, name+`: the value "`+value+`" is about RabbitMQ, but CURFEW_PRIMARY_URL names none`)
		}
		for _, command := range [][]string{{"status"}, {"rabbitmq", "status"}, {"queue", "list"}} {
			code, _, errOut := runCommand(t, append(command, "--url", "http://"+testenv.FreeAddr())...)
			assert.NotEqual(t, exitUsage, code, errOut)
			assert.NotZero(t, code)
			assert.NotContains(t, errOut, name)
		}
	}
}

// TestWhatWasSeen: a plan takes what a running Curfew has seen, if it is beside the same cluster and virtual host, and says why it does not.
func TestWhatWasSeen(t *testing.T) {
	seen := cluster.TTLStats{Messages: 5, Expiring: 2, Least: 50, Most: 3_600_000}
	status := rabbitmq.Status{Cluster: "rabbit@one", VHost: "shop", Queues: []rabbitmq.Queue{{Queue: "retry", Seen: &seen}, {Queue: "other"}}}
	curfew := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); r.URL.Path != "/api/curfew/rabbitmq" || user != "guest" || password != "guest" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		assert.NoError(t, json.NewEncoder(w).Encode(status))
	}))
	t.Cleanup(curfew.Close)
	inventory := &cluster.Inventory{Server: cluster.Server{Cluster: "rabbit@one"}, VHost: "shop"}
	asked := func(flags ...string) (map[string]cluster.TTLStats, string, error) {
		cmd := &cobra.Command{}
		a := cli.WithAPI(cmd)
		cmd.SetContext(t.Context())
		require.NoError(t, cmd.ParseFlags(flags))
		return whatWasSeen(cmd, a, inventory)
	}
	ask := func(flag string, variables ...string) (map[string]cluster.TTLStats, string, error) {
		setenv(t, variables...)
		return asked(strings.Fields(flag)...)
	}
	here := "CURFEW_HTTP_ADDR=" + strings.TrimPrefix(curfew.URL, "http://")
	got, why, err := ask("", here)
	require.NoError(t, err)
	assert.Empty(t, why)
	assert.Equal(t, map[string]cluster.TTLStats{"retry": seen}, got)
	got, _, err = ask("--url "+curfew.URL+"/", "CURFEW_HTTP_ADDR=127.0.0.1:1")
	require.NoError(t, err)
	assert.Len(t, got, 1)

	_, why, err = ask("", "CURFEW_HTTP_ADDR="+testenv.FreeAddr())
	require.NoError(t, err)
	assert.Contains(t, why, "no Curfew answers at http://127.0.0.1:")
	_, why, err = ask("", here, "CURFEW_PASSWORD=other")
	require.NoError(t, err)
	assert.Contains(t, why, "no Curfew")
	_, _, err = ask("--url http://" + testenv.FreeAddr())
	require.ErrorContains(t, err, "http://127.0.0.1:")
	got, _, err = ask("", "CURFEW_URL="+curfew.URL)
	require.NoError(t, err)
	assert.Len(t, got, 1)
	inventory.Server.Cluster = "rabbit@two"
	_, why, err = ask("", here)
	require.NoError(t, err)
	assert.Contains(t, why, "is beside virtual host shop of cluster rabbit@one, and this is shop of rabbit@two")
}
