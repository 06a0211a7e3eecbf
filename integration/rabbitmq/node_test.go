package rabbitmq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/testenv"
	"curfew/monitor/rabbitmq/cluster"
)

const (
	startLimit  = 3 * time.Minute
	answerLimit = 30 * time.Second
)

// plugins are enabled on every node besides the management plugin.
var plugins = []string{"rabbitmq_management", "rabbitmq_event_exchange", "rabbitmq_federation", "rabbitmq_shovel",
	"rabbitmq_consistent_hash_exchange", "rabbitmq_random_exchange"}

// scratch is the folder of the run: the home of all nodes, with their common Erlang cookie, and what tests build.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "curfew-rabbitmq-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	for _, n := range slices.Concat(shared.nodes, trio.nodes, lone.nodes) {
		n.kill()
	}
	if epmd.cmd != nil {
		end(epmd.cmd)
	}
	os.RemoveAll(scratch)
	os.Exit(code)
}

// node is one RabbitMQ node of this run.
type node struct {
	name string // the Erlang node: x@127.0.0.1
	addr string // host:port of AMQP
	url  string // of virtual host /, as guest
	http string // the management API
	log  *testenv.Log
	env  []string
	cmd  *exec.Cmd
}

// shared is the node that serves the whole run.
var shared struct {
	once  sync.Once
	nodes []*node
	err   error
}

// sharedNode returns the node that serves the whole run. Tests neither stop it nor use its virtual host /.
func sharedNode(t testing.TB) *node {
	t.Helper()
	shared.once.Do(func() { shared.nodes, shared.err = runNodes(1) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.nodes[0]
}

// epmd is the port mapper of all nodes of the run. A node that finds none would leave a daemon of its own behind.
var epmd struct {
	once sync.Once
	port string
	cmd  *exec.Cmd
	err  error
}

func startEpmd() error {
	epmd.once.Do(func() {
		if epmd.err = findTools(); epmd.err != nil {
			return
		}
		if epmd.err = os.WriteFile(filepath.Join(scratch, ".erlang.cookie"), []byte("CURFEWTESTS"), 0o400); epmd.err != nil {
			return
		}
		epmd.port = freePort()
		epmd.cmd = command(new(testenv.Log), []string{"ERL_EPMD_ADDRESS=127.0.0.1"}, tool("epmd"), "-port", epmd.port)
		if epmd.err = epmd.cmd.Start(); epmd.err != nil {
			return
		}
		epmd.err = poll(time.Minute, func() (bool, error) { return listens("127.0.0.1:" + epmd.port), nil })
	})
	return epmd.err
}

func runNodes(count int) (nodes []*node, err error) {
	if err := startEpmd(); err != nil {
		return nil, err
	}
	config := "cluster_formation.peer_discovery_backend = classic_config\n"
	if family() == cluster.Family3 { // later versions do not wait for a random time
		config += "cluster_formation.randomized_startup_delay_range.min = 0\ncluster_formation.randomized_startup_delay_range.max = 1\n"
	}
	for i := range count {
		n := newNode()
		nodes = append(nodes, n)
		config += fmt.Sprintf("cluster_formation.classic_config.nodes.%d = %s\n", i+1, n.name)
	}
	for _, n := range nodes {
		err = errors.Join(err, n.prepare(config))
	}
	together := nodes
	if err == nil && family() == cluster.Family3 { // the others find it when they start; later versions wait for each other
		err = nodes[0].start()
		together = nodes[1:]
	}
	if err == nil {
		started := make(chan error)
		for _, n := range together {
			go func() { started <- n.start() }()
		}
		for range together {
			err = errors.Join(err, <-started)
		}
	}
	if err != nil {
		for _, n := range nodes {
			n.kill()
		}
	}
	return nodes, err
}

func newNode() *node {
	port := freePort()
	n := &node{name: "curfew-" + port + "@127.0.0.1", addr: "127.0.0.1:" + port, log: new(testenv.Log), http: "http://127.0.0.1:" + freePort()}
	n.url = "amqp://guest:guest@" + n.addr
	return n
}

// prepare writes the node's configuration.
func (n *node) prepare(config string) error {
	dir := filepath.Join(scratch, n.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	_, httpPort, _ := strings.Cut(strings.TrimPrefix(n.http, "http://"), ":")
	_, port, _ := strings.Cut(n.addr, ":")
	enabled := plugins
	if family() == cluster.Family43 {
		folder, err := delayedPlugin()
		if err != nil {
			return err
		}
		enabled = append(slices.Clone(plugins), "curfew_delayed")
		n.env = []string{"RABBITMQ_PLUGINS_DIR=" + serverPlugins + ":" + folder}
	}
	for name, text := range map[string]string{
		"plugins":       "[" + strings.Join(enabled, ",") + "].\n",
		"rabbitmq.conf": "management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = " + httpPort + "\n" + config,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	n.env = append(n.env,
		"HOME="+scratch, // the Erlang cookie
		"ERL_EPMD_PORT="+epmd.port,
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME="+n.name,
		"RABBITMQ_USE_LONGNAME=true",
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+port,
		"RABBITMQ_DIST_PORT="+freePort(),
		"RABBITMQ_MNESIA_BASE="+filepath.Join(dir, "mnesia"),
		"RABBITMQ_LOG_BASE="+filepath.Join(dir, "log"),
		"RABBITMQ_LOGS=-",
		"RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(dir, "plugins"),
		"RABBITMQ_CONFIG_FILE="+filepath.Join(dir, "rabbitmq.conf"),
		"RABBITMQ_CONF_ENV_FILE=/dev/null",
	)
	return nil
}

// start starts the node and waits until it is ready. It may be called again after kill: the node still has its files.
func (n *node) start() error {
	n.log.Reset()
	n.cmd = command(n.log, n.env, tool("rabbitmq-server"))
	if err := n.cmd.Start(); err != nil {
		return fmt.Errorf("start RabbitMQ: %w", err)
	}
	err := poll(startLimit, func() (bool, error) {
		log := n.log.String()
		if strings.Contains(log, "BOOT FAILED") {
			return false, errors.New("it did not start")
		}
		return strings.Contains(log, "Server startup complete"), nil
	})
	if err != nil {
		return fmt.Errorf("RabbitMQ %s: %w\n%s", n.name, err, n.log.Tail(8000))
	}
	return nil
}

// kill ends the node at once, as a crash would.
func (n *node) kill() {
	if n.cmd != nil {
		end(n.cmd)
		n.cmd = nil
	}
}

// ctl runs rabbitmqctl on the node and returns what it prints; each call takes a second or two.
func (n *node) ctl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := n.tryCtl(args...)
	check(t, err)
	return out
}

func (n *node) tryCtl(args ...string) (string, error) {
	cmd := exec.Command(tool("rabbitmqctl"), args...)
	cmd.Env = append(os.Environ(), n.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("rabbitmqctl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// vhost makes a virtual host for the test, in which guest may do everything, and returns its AMQP URL. It is deleted when the test ends.
func (n *node) vhost(t testing.TB) (vhost, amqpURL string) {
	t.Helper()
	vhost = strings.ReplaceAll(t.Name(), "/", "-")
	n.api(t, http.MethodPut, "vhosts/"+vhost, nil, nil)
	n.api(t, http.MethodPut, "permissions/"+vhost+"/guest", map[string]string{"configure": ".*", "write": ".*", "read": ".*"}, nil)
	t.Cleanup(func() {
		err := n.tryAPI(http.MethodDelete, "vhosts/"+vhost, nil, nil)
		for tries := 1; err != nil && tries < 5; tries++ { // a queue of a million messages takes longer than RabbitMQ waits for it
			if err = n.tryAPI(http.MethodDelete, "vhosts/"+vhost, nil, nil); err != nil && strings.Contains(err.Error(), "404 Not Found") {
				return
			}
		}
		check(t, err)
	})
	return vhost, n.url + "/" + vhost
}

// api makes a request to the management API as guest: in is sent as JSON, the answer is read into out; both may be nil.
func (n *node) api(t testing.TB, method, path string, in, out any) {
	t.Helper()
	check(t, n.tryAPI(method, path, in, out))
}

func (n *node) tryAPI(method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, n.http+"/api/"+path, body)
	if err != nil {
		return err
	}
	req.SetBasicAuth("guest", "guest")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s %s", method, path, res.Status, b)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(b, out)
	}
	return err
}

// user makes a user whose password is the name, with these permissions in the virtual host, and returns amqpURL for
// this user.
func (n *node) user(t testing.TB, amqpURL, name, tags, configure, write, read string) string {
	t.Helper()
	u, err := url.Parse(amqpURL)
	check(t, err)
	n.api(t, http.MethodPut, "users/"+name, map[string]string{"password": name, "tags": tags}, nil)
	t.Cleanup(func() { n.api(t, http.MethodDelete, "users/"+name, nil, nil) })
	vhost := strings.TrimPrefix(u.Path, "/")
	n.api(t, http.MethodPut, "permissions/"+url.PathEscape(vhost)+"/"+name, map[string]string{"configure": configure, "write": write, "read": read}, nil)
	u.User = url.UserPassword(name, name)
	return u.String()
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

// command is a process in a group of its own, so that its children end with it, and it ends with us.
func command(log io.Writer, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

func end(cmd *exec.Cmd) {
	if cmd.Process != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	}
}

func listens(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func freePort() string {
	_, port, _ := net.SplitHostPort(testenv.FreeAddr())
	return port
}

// check, eventually and poll are what tests wait and fail with.
var check, eventually, poll = testenv.Check, testenv.Eventually, testenv.Poll
