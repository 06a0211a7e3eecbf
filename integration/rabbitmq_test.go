package integration

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"curfew/integration/testenv"
)

const rabbitmqServer = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// rabbitmq is a RabbitMQ node of the test run's own: own name, ports, port mapper and files.
type rabbitmq struct {
	url  string
	http string // of the management plugin
	node *exec.Cmd
	epmd *exec.Cmd
	log  *testenv.Log
}

// One node serves the whole run, since starting it takes seconds; tests take queue names of their own.
var (
	sharedRabbitMQ  *rabbitmq
	rabbitMQStarted = sync.OnceValue(func() (err error) {
		sharedRabbitMQ, err = runRabbitMQ(filepath.Join(scratch, "rabbitmq"))
		return err
	})
)

// rabbitMQDefinitions is held by a test that sets or reads policies, users or whole definitions of the shared node beside others.
var rabbitMQDefinitions sync.Mutex

// startRabbitMQ returns the URL of a running RabbitMQ.
func startRabbitMQ(t testing.TB) string {
	t.Helper()
	if err := rabbitMQStarted(); err != nil {
		t.Fatal(err)
	}
	return sharedRabbitMQ.url
}

func stopSharedRabbitMQ() {
	if sharedRabbitMQ != nil {
		sharedRabbitMQ.stop()
	}
}

// runRabbitMQ starts a node with its files in dir.
func runRabbitMQ(dir string) (*rabbitmq, error) {
	if _, err := os.Stat(rabbitmqServer); err != nil {
		return nil, errors.New("RabbitMQ is needed: apt-get install -y --no-install-recommends rabbitmq-server (or `make deps`)")
	}
	amqpPort, distPort, epmdPort, httpPort := freePort(), freePort(), freePort(), freePort()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{
		"plugins":       "[rabbitmq_federation,rabbitmq_management].\n",
		"rabbitmq.conf": "management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = " + httpPort + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	env := append(os.Environ(),
		"HOME="+dir, // the Erlang cookie
		"ERL_EPMD_PORT="+epmdPort,
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME=curfew-test-"+amqpPort+"@127.0.0.1",
		"RABBITMQ_USE_LONGNAME=true",
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+amqpPort,
		"RABBITMQ_DIST_PORT="+distPort,
		"RABBITMQ_MNESIA_BASE="+filepath.Join(dir, "mnesia"),
		"RABBITMQ_LOG_BASE="+filepath.Join(dir, "log"),
		"RABBITMQ_LOGS=-",
		"RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(dir, "plugins"),
		"RABBITMQ_CONFIG_FILE="+filepath.Join(dir, "rabbitmq.conf"),
		"RABBITMQ_CONF_ENV_FILE=/dev/null",
	)
	r := &rabbitmq{url: "amqp://guest:guest@127.0.0.1:" + amqpPort, http: "http://127.0.0.1:" + httpPort, log: new(testenv.Log)}
	r.epmd = r.command(env, "epmd", "-port", epmdPort)
	r.node = r.command(env, rabbitmqServer)
	if err := r.start("127.0.0.1:" + epmdPort); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// start runs the port mapper first: a node that finds none leaves a daemon of its own behind.
func (r *rabbitmq) start(epmdAddr string) error {
	if err := r.epmd.Start(); err != nil {
		return fmt.Errorf("start epmd: %w", err)
	}
	err := poll(time.Minute, func() (bool, error) {
		conn, err := net.Dial("tcp", epmdAddr)
		if err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
	if err != nil {
		return fmt.Errorf("epmd: %w", err)
	}
	if err := r.node.Start(); err != nil {
		return fmt.Errorf("start RabbitMQ: %w", err)
	}
	if err := poll(3*time.Minute, r.booted); err != nil {
		return fmt.Errorf("RabbitMQ: %w\n%s", err, r.log)
	}
	return nil
}

func (r *rabbitmq) booted() (bool, error) {
	log := r.log.String()
	if strings.Contains(log, "BOOT FAILED") {
		return false, errors.New("it did not start")
	}
	return strings.Contains(log, "Server startup complete"), nil
}

func (r *rabbitmq) command(env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = r.log, r.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL} // the node's helpers end with it, and it with us
	return cmd
}

// done makes a request of guest to the node's management API that has to succeed. rabbitmqctl would take seconds to start.
func (r *rabbitmq) done(t testing.TB, method, path, body string) {
	t.Helper()
	if status, answer := request(t, r.http, "guest", "guest", method, "/api/"+path, body); status >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
}

func (r *rabbitmq) stop() {
	for _, cmd := range []*exec.Cmd{r.node, r.epmd} {
		if cmd.Process != nil {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			cmd.Wait()
		}
	}
}

func freePort() string {
	_, port, _ := net.SplitHostPort(testenv.FreeAddr())
	return port
}
