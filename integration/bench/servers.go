package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"curfew/integration/testenv"
)

// broker is a running server and how to reach it.
type broker struct {
	*process
	url string
	ops string // Curfew's http://host:port
}

// startCurfew runs the release binary with the given settings ("MONITOR=false"), with its
// data in dir. It returns when Curfew is ready, with the time that took.
func (b *bench) startCurfew(dir string, settings ...string) (*broker, time.Duration, error) {
	addrs := []string{testenv.FreeAddr(), testenv.FreeAddr(), testenv.FreeAddr()}
	env := []string{}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "CURFEW_") {
			env = append(env, v)
		}
	}
	settings = append([]string{"AMQP_ADDR=" + addrs[0], "OPS_ADDR=" + addrs[1], "HTTP_ADDR=" + addrs[2], "DATA_DIR=" + dir, "MAX_CONNECTIONS=20000", "LOG_LEVEL=warn"}, settings...)
	for _, s := range settings {
		env = append(env, "CURFEW_"+s)
	}
	start := time.Now()
	p, err := startProcess(env, b.dir, b.binary, "serve")
	if err != nil {
		return nil, 0, err
	}
	c := &broker{process: p, url: "amqp://guest:guest@" + addrs[0], ops: "http://" + addrs[1]}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	err = p.await("curfew", time.Minute, func() bool {
		answer, err := client.Get(c.ops + "/readyz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	took := time.Since(start)
	if err != nil {
		p.stop()
		return nil, 0, err
	}
	return c, took, nil
}

// metrics returns Curfew's metrics.
func (c *broker) metrics() (string, error) {
	answer, err := http.Get(c.ops + "/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	return string(b), err
}

const rabbitmqServer = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// startRabbitMQ starts a node with its own name, ports, port mapper and files.
func startRabbitMQ(dir string) (*broker, error) {
	if _, err := os.Stat(rabbitmqServer); err != nil {
		return nil, errors.New("RabbitMQ is needed: apt-get install -y --no-install-recommends rabbitmq-server (or `make deps`)")
	}
	addrs := []string{testenv.FreeAddr(), testenv.FreeAddr(), testenv.FreeAddr()}
	_, port, _ := net.SplitHostPort(addrs[0])
	_, distPort, _ := net.SplitHostPort(addrs[1])
	_, epmdPort, _ := net.SplitHostPort(addrs[2])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	env := append(os.Environ(),
		"HOME="+dir, "ERL_EPMD_PORT="+epmdPort, "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME=curfew-bench-"+port+"@127.0.0.1", "RABBITMQ_USE_LONGNAME=true",
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1", "RABBITMQ_NODE_PORT="+port, "RABBITMQ_DIST_PORT="+distPort,
		"RABBITMQ_MNESIA_BASE="+filepath.Join(dir, "mnesia"), "RABBITMQ_LOG_BASE="+filepath.Join(dir, "log"), "RABBITMQ_LOGS=-",
		"RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(dir, "plugins"), "RABBITMQ_CONFIG_FILE="+filepath.Join(dir, "rabbitmq.conf"),
		"RABBITMQ_CONF_ENV_FILE=/dev/null",
	)
	mapper, err := startProcess(env, dir, "epmd", "-port", epmdPort) // a node that finds no port mapper starts a daemon and leaves it behind
	if err != nil {
		return nil, err
	}
	if err := mapper.await("epmd", 10*time.Second, func() bool { return listening(addrs[2]) }); err != nil {
		return nil, err
	}
	p, err := startProcess(env, dir, rabbitmqServer)
	if err != nil {
		mapper.stop()
		return nil, err
	}
	context.AfterFunc(endContext(p), mapper.stop)
	err = p.await("RabbitMQ", 2*time.Minute, func() bool { return strings.Contains(p.log.String(), "Server startup complete") })
	if err != nil {
		p.stop()
		return nil, err
	}
	return &broker{process: p, url: "amqp://guest:guest@" + addrs[0]}, nil
}

// endContext returns a context that ends with the process.
func endContext(p *process) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-p.gone
		cancel()
	}()
	return ctx
}

// rabbitmqVersion returns the version of the Debian package.
func rabbitmqVersion() string {
	out, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server").Output()
	if err != nil {
		return "?"
	}
	version, _, _ := strings.Cut(string(out), "-")
	return version
}

// startRedis starts a redis-server that stores nothing on disk.
func startRedis(dir string) (p *process, url string, err error) {
	addr := testenv.FreeAddr()
	_, port, _ := net.SplitHostPort(addr)
	p, err = startProcess(os.Environ(), dir, "redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", dir)
	if err != nil {
		return nil, "", fmt.Errorf("%w; apt-get install -y --no-install-recommends redis-server (or `make deps`)", err)
	}
	if err := p.await("Redis", 10*time.Second, func() bool { return strings.Contains(p.log.String(), "Ready to accept") }); err != nil {
		p.stop()
		return nil, "", err
	}
	return p, "redis://" + addr, nil
}
