package rabbitmq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
	"curfew/monitor/rabbitmq/plan"
)

// binary is the curfew command, built once for the run.
var binary = sync.OnceValues(func() (string, error) { return testenv.Curfew(scratch) })

// run runs the curfew command with CURFEW_ variables and returns what it prints.
func run(t *testing.T, env []string, stdin string, args ...string) string {
	t.Helper()
	path, err := binary()
	check(t, err)
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("curfew %v: %v\n%s", args, err, errOut.String())
	}
	return out.String()
}

// serve runs a Curfew for this test and returns the addresses of its AMQP and its API.
func serve(t *testing.T) (addr, api string) {
	t.Helper()
	path, err := binary()
	check(t, err)
	addr, api = testenv.FreeAddr(), testenv.FreeAddr()
	ops := testenv.FreeAddr()
	log := new(testenv.Log)
	cmd := command(log, []string{"CURFEW_AMQP_ADDR=" + addr, "CURFEW_HTTP_ADDR=" + api, "CURFEW_OPS_ADDR=" + ops, "CURFEW_DATA_DIR=" + t.TempDir()}, path, "serve")
	check(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if t.Failed() {
			t.Logf("Curfew's log:\n%s", log.Tail(4000))
		}
	})
	eventually(t, answerLimit, "Curfew to be ready", func() bool {
		res, err := http.Get("http://" + ops + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return addr, "http://" + api
}

// shellIn runs a script with the tools of the node.
func (n *node) shellIn(t *testing.T, script string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script") // from Erlang 26 on, rabbitmqctl reads ahead in the input from which the shell reads
	check(t, os.WriteFile(file, []byte(script), 0o600))
	cmd := exec.Command("sh", "-e", file)
	cmd.Env = append(os.Environ(), n.env...)
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(tool("rabbitmqctl"))+":"+os.Getenv("PATH"), "CURFEW_PASSWORD=secret")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, script)
	}
}

// TestGateway applies the output of `curfew rabbitmq plan --emit`, in each form that RabbitMQ takes; then messages wait in Curfew. Those in
// the middle of the queue expire on time and reach RabbitMQ's dead-letter exchange, the others reach RabbitMQ's consumers in order.
func TestGateway(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	curfew, api := serve(t)
	apply := map[string]func(t *testing.T, text string){
		"rabbitmqctl": func(t *testing.T, text string) { n.shellIn(t, text) },
		"definitions": func(t *testing.T, text string) {
			file := filepath.Join(t.TempDir(), "definitions.json")
			check(t, os.WriteFile(file, []byte(text), 0o600))
			n.ctl(t, "import_definitions", file)
		},
	}
	for format, apply := range apply {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			gateway(t, n, format, apply, curfew, api)
		})
	}
}

// words splits a command as a shell does.
func words(t *testing.T, command string) []string {
	t.Helper()
	out, err := exec.Command("sh", "-c", "printf '%s\\n' "+command).Output()
	check(t, err)
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

func gateway(t *testing.T, n *node, format string, apply func(*testing.T, string), curfew, api string) {
	const messages, short = 300, 3 // every third lives for a moment
	vhost, url := n.vhost(t)
	queue := "orders." + format
	ch := openChannel(t, dial(t, url))
	check(t, ch.ExchangeDeclare("shop", "topic", true, false, false, false, nil))
	check(t, ch.ExchangeDeclare("dlx", "topic", true, false, false, false, nil))
	declare(t, ch, "dead", nil)
	check(t, ch.QueueBind("dead", "order.#", "dlx", false, nil))
	declare(t, ch, queue, table{"x-queue-type": "quorum", "x-dead-letter-exchange": "dlx"})
	check(t, ch.QueueBind(queue, "order.#", "shop", false, nil))

	connected := fmt.Sprintf("Federation queue '%s' in vhost '%s' connected to", queue, vhost)
	before := strings.Count(n.log.String(), connected)
	user := "gateway-" + format
	t.Cleanup(func() { n.api(t, http.MethodDelete, "users/"+user, nil, nil) })
	env := []string{"CURFEW_PRIMARY_URL=" + url, "CURFEW_PRIMARY_API_URL=" + n.http}
	args := []string{"rabbitmq", "plan", "--curfew-user", user, "--gateway", queue, "--curfew-url", "amqp://guest:guest@" + curfew, "--emit"}
	declared := 0
	for line := range strings.Lines(run(t, env, "", append(args, "rabbitmqctl")...)) {
		if command, is := strings.CutPrefix(line, "# "+plan.InCurfew+"curfew "); is {
			run(t, nil, "", append(words(t, command), "--url", api)...)
			declared++
		}
	}
	require.Equal(t, 6, declared)
	apply(t, run(t, env, "", append(args, format)...))
	check(t, ch.QueueUnbind(queue, "order.#", "shop", nil)) // the operator's last step

	var permissions []struct{ User, Configure, Read string }
	n.api(t, http.MethodGet, "vhosts/"+vhost+"/permissions", nil, &permissions)
	require.Contains(t, permissions, struct{ User, Configure, Read string }{user, `^curfew\.tap\.`, `^(curfew\.tap\..*|dlx|shop)$`})

	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("queues in Curfew:\n%s\nRabbitMQ's log:\n%s", run(t, nil, "", "queue", "list", "--url", api), n.log.Tail(4000))
		}
	})
	letters, err := openChannel(t, dial(t, url)).Consume("dead", "", true, false, false, false, nil)
	check(t, err)
	began := map[string]time.Time{}
	for i := range messages {
		expiration := "3600000"
		if i%short == 1 {
			expiration = strconv.Itoa(3000 + 2*i)
		}
		id := strconv.Itoa(i)
		began[id] = time.Now()
		check(t, ch.PublishWithContext(t.Context(), "shop", "order.new", false, false, amqp091.Publishing{MessageId: id, Expiration: expiration, DeliveryMode: amqp091.Persistent}))
	}
	worst := time.Duration(0)
	for range messages / short {
		select {
		case d := <-letters:
			i, err := strconv.Atoi(d.MessageId)
			check(t, err)
			require.Equal(t, 1, i%short, "message %d has expired", i)
			require.Equal(t, "order.new", d.RoutingKey)
			death := d.Headers["x-death"].([]any)[0].(table)
			require.Equal(t, "expired", death["reason"])
			require.Equal(t, queue, death["queue"])
			ttl := time.Duration(3000+2*i) * time.Millisecond
			late := time.Since(began[d.MessageId]) - ttl
			require.Greater(t, late, -time.Millisecond, "message %d is early", i)
			worst = max(worst, late)
		case <-time.After(answerLimit):
			t.Fatal("a message did not expire")
		}
	}
	t.Logf("%s: the last of %d dead letters reached RabbitMQ %v after its deadline at most", format, messages/short, worst)

	worker := openChannel(t, dial(t, url))
	check(t, worker.Qos(50, 0, false))
	jobs, err := worker.Consume(queue, "", false, false, false, false, nil)
	check(t, err)
	for i := range messages {
		if i%short == 1 {
			continue
		}
		select {
		case d := <-jobs:
			require.Equal(t, strconv.Itoa(i), d.MessageId, "the order")
			left, err := strconv.Atoi(d.Expiration) // x-remaining-expiration
			check(t, err)
			require.LessOrEqual(t, left, 3600000-3000, "it waited at least as long as the messages before it that expired")
			require.GreaterOrEqual(t, left, int(3600000-time.Since(began[d.MessageId]).Milliseconds()), "it has not waited longer than this")
			if i == 0 {
				t.Logf("consumers see exchange %q, routing key %q and headers %v", d.Exchange, d.RoutingKey, d.Headers)
			}
			check(t, d.Ack(false))
		case <-time.After(answerLimit):
			t.Fatalf("message %d did not arrive", i)
		}
	}
	require.Equal(t, before+1, strings.Count(n.log.String(), connected), "the set-up of another virtual host does not interrupt the link")
}

// TestPlan compares the table with a virtual host that has a queue of each kind.
func TestPlan(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	_, url := n.vhost(t)
	ch := openChannel(t, dial(t, url))
	declare(t, ch, "retry", table{"x-queue-type": "quorum", "x-dead-letter-exchange": ""})
	declare(t, ch, "uniform", table{"x-message-ttl": 60000})
	declare(t, ch, "stream", table{"x-queue-type": "stream"})
	declare(t, ch, "orders", nil)
	check(t, ch.QueueBind("orders", "", "amq.fanout", false, nil))
	env := []string{"CURFEW_PRIMARY_URL=" + url, "CURFEW_PRIMARY_API_URL=" + n.http, "CURFEW_WATCH=keep:retry*,observe:*"}
	var rows map[string]string
	eventually(t, answerLimit, "statistics", func() bool {
		rows = map[string]string{}
		for line := range strings.SplitSeq(run(t, env, "", "rabbitmq", "plan"), "\n") {
			if fields := strings.Fields(line); len(fields) > 8 {
				rows[fields[0]] = strings.Join(fields[1:8], " ")
			}
		}
		return strings.Contains(rows["retry"], "kept")
	})
	require.Equal(t, map[string]string{
		"QUEUE":   "TYPE TTL MESSAGES CONSUMERS RULE DEADLINES OBSERVED",
		"retry":   "quorum unknown 0 0 keep kept totals",
		"uniform": "classic 1m0s 0 0 observe exact totals",
		"stream":  "stream - 0 0 observe refused totals",
		"orders":  "classic unknown 0 0 observe kept single",
	}, rows)
	var plan struct {
		Broker string
		Queues []struct {
			Queue, Deadlines, Code string
			Cost                   *struct{ Held int }
		}
	}
	check(t, json.Unmarshal([]byte(run(t, env, "", "rabbitmq", "plan", "-o", "json")), &plan))
	require.Equal(t, "RabbitMQ "+version, plan.Broker)
	require.Len(t, plan.Queues, 4)
	require.Equal(t, "retry", plan.Queues[1].Queue)
	require.Contains(t, run(t, env, "", "rabbitmq", "plan", "--emit", "rabbitmqctl"), `"^(amq\\.fanout|curfew\\.tap\\..*|retry|retry.*)$"`)
}
