package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// The foreign clients, each failing the test with the command that installs it where it is missing.

func pikaClient(t testing.TB) client {
	needs(t, "python3-pika", "/usr/bin/python3", "-c", "import pika")
	return script{command: []string{"/usr/bin/python3", "clients/pika/deadlines.py"}}
}

func nodeClient(t testing.TB) client {
	modules, err := filepath.Abs("../.cache/node/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	needs(t, "nodejs npm", "node", "--version")
	if _, err := os.Stat(filepath.Join(modules, "amqplib")); err != nil {
		t.Fatal("Node's amqplib is needed: make deps")
	}
	return script{command: []string{"node", "clients/node/deadlines.js"}, env: []string{"NODE_PATH=" + modules}}
}

// rheaClient and protonClient speak AMQP 1.0.
func rheaClient(t testing.TB) client {
	rhea := nodeClient(t).(script)
	rhea.command = []string{"node", "clients/node/amqp10.js"}
	return rhea
}

func protonClient(t testing.TB) client {
	needs(t, "python3-qpid-proton", "/usr/bin/python3", "-c", "import proton")
	return script{command: []string{"/usr/bin/python3", "clients/proton/deadlines.py"}}
}

func aioPikaClient(t testing.TB) client {
	needs(t, "python3-aio-pika", "/usr/bin/python3", "-c", "import aio_pika")
	return script{command: []string{"/usr/bin/python3", "clients/aiopika/deadlines.py"}}
}

func bunnyClient(t testing.TB) client {
	needs(t, "ruby-bunny", "/usr/bin/ruby", "-e", "require 'bunny'")
	return script{command: []string{"/usr/bin/ruby", "clients/bunny/deadlines.rb"}}
}

func phpClient(t testing.TB) client {
	needs(t, "php-cli php-amqplib", "php", "-r", "require_once 'PhpAmqpLib/autoload.php';")
	return script{command: []string{"php", "clients/php/deadlines.php"}}
}

const javaClasses = "/usr/share/java/amqp-client.jar:/usr/share/java/slf4j-api.jar:/usr/share/java/slf4j-nop.jar"

var javaProgram = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("javac", "-cp", javaClasses, "-d", filepath.Join(scratch, "java"), "clients/java/Deadlines.java", "clients/java/Idle.java").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("Java's client is needed: apt-get install -y --no-install-recommends default-jdk-headless librabbitmq-client-java (or `make deps`): %w\n%s", err, out)
	}
	return filepath.Join(scratch, "java"), nil
})

func javaClient(t testing.TB) client { return java(t, "Deadlines") }

func java(t testing.TB, class string) script {
	return script{command: []string{"java", "-XX:TieredStopAtLevel=1", "-cp", javaClasses + ":" + mustBinary(t, javaProgram), class}}
}

// TestIdleConnections has Java's client hold idle connections for a minute that it closes when it reads nothing for one heartbeat interval.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	lines := java(t, "Idle").run(t, nil, "idle", startCurfew(t).url, "10", "5", "60")
	if last := lines[len(lines)-1]; !slices.Equal(last, []string{"open", "10"}) {
		t.Errorf("%v of 10 are open after a minute", last)
	}
}

var librabbitmqProgram = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(scratch, "librabbitmq-deadlines")
	out, err := exec.Command("cc", "-O1", "-Wall", "-Werror", "-o", binary, "clients/librabbitmq/deadlines.c", "-lrabbitmq").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("librabbitmq is needed: apt-get install -y --no-install-recommends gcc libc6-dev librabbitmq-dev (or `make deps`): %w\n%s", err, out)
	}
	return binary, nil
})

func librabbitmqClient(t testing.TB) client {
	return script{command: []string{mustBinary(t, librabbitmqProgram)}}
}

func needs(t testing.TB, packages string, probe ...string) {
	t.Helper()
	if out, err := exec.Command(probe[0], probe[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s is needed: apt-get install -y --no-install-recommends %s (or `make deps`): %v\n%s", packages, packages, err, out)
	}
}
