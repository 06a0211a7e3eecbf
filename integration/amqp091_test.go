package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	ownTestsPassed = 384             // of amqp091-go 1.16.0 on RabbitMQ 3.10, subtests and examples counted
	ownTestsLimit  = 5 * time.Minute // its own is 4 minutes; it takes 142 s

	// Three of them look for a broker called RabbitMQ, and having found none return without closing their connection, which the suite
	// itself reports at its end.
	ownTestsLeak = "goleak: Errors on successful test run"

	// Where the processors are busy a test of its recovery may wait forever: Channel.call looks where its reply will come only after it has
	// sent. If the channel was closed and is opened again in between, it takes the open-ok, for which Channel.open then waits.
	ownTestsHang = "running tests:\n\t\tTestConnectionRecovery"
)

var ownTests = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(scratch, "amqp091-go.test")
	cmd := exec.Command("go", "test", "-c", "-trimpath", "-tags", "integration", "-o", binary, "github.com/rabbitmq/amqp091-go")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as the release: the go tool has compiled most of it
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build amqp091-go's tests: %w\n%s", err, out)
	}
	return binary, nil
})

// TestAmqp091Own runs amqp091-go's own integration tests against Curfew. They want a broker on 127.0.0.1:5672 with its management API
// on 15672: they get both in a network of their own. What they ask of rabbitmqctl, to raise an alarm and to clear it, is done
// with the disk: the data folder is a small file system of its own that is filled and emptied.
func TestAmqp091Own(t *testing.T) {
	t.Parallel()
	namespaces := networkOfItsOwn(t)
	out, err := runOwnTests(t, namespaces)
	if err != nil && strings.Contains(string(out), ownTestsHang) {
		t.Log("a call of amqp091-go took the reply of another: once more")
		out, err = runOwnTests(t, namespaces)
	}
	for _, m := range regexp.MustCompile(`(?m)^ *--- (FAIL|SKIP): \S+`).FindAllString(string(out), -1) {
		t.Error(m)
	}
	if passed := len(regexp.MustCompile(`(?m)^ *--- PASS`).FindAll(out, -1)); passed < ownTestsPassed {
		t.Errorf("%d of amqp091-go's tests passed, not %d", passed, ownTestsPassed)
	}
	if err != nil && !strings.Contains(string(out), ownTestsLeak) {
		t.Errorf("amqp091-go's tests: %v", err)
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

// networkOfItsOwn are the options of unshare with which a program has a network, and mounts, of its own. All that it starts is killed with it.
func networkOfItsOwn(t *testing.T) []string {
	t.Helper()
	namespaces := []string{"--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"}
	if exec.Command("unshare", append(namespaces, "true")...).Run() != nil { // without root it takes a user namespace, too
		namespaces = append(namespaces, "--user", "--map-root-user")
		if out, err := exec.Command("unshare", append(namespaces, "true")...).CombinedOutput(); err != nil {
			t.Fatalf("%s: run `make test-privileged` as root (in a container with --cap-add SYS_ADMIN), or where users may make namespaces", out)
		}
	}
	return namespaces
}

// runOwnTests runs the suite against a Curfew of its own. Both are killed with the test.
func runOwnTests(t *testing.T, namespaces []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ownTestsLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", append(slices.Clone(namespaces), "sh", "clients/amqp091-go/run.sh",
		mustBinary(t, release), mustBinary(t, ownTests), moduleFolder(t, "github.com/rabbitmq/amqp091-go"), t.TempDir())...)
	cmd.Env = environment(nil)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd.CombinedOutput()
}

func moduleFolder(t testing.TB, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	check(t, err)
	return strings.TrimSpace(string(out))
}
