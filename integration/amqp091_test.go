package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	ownTestsPassed = 384 // of amqp091-go 1.16.0 on RabbitMQ 3.10, subtests and examples counted
	ownTestsLimit  = 8 * time.Minute

	// Three of them look for a broker called RabbitMQ, and having found none return without closing their connection, which the suite
	// itself reports at its end.
	ownTestsLeak = "goleak: Errors on successful test run"
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
	ctx, cancel := context.WithTimeout(context.Background(), ownTestsLimit)
	defer cancel()
	namespaces := []string{"--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"}
	if exec.Command("unshare", append(namespaces, "true")...).Run() != nil { // without root it takes a user namespace, too
		namespaces = append(namespaces, "--user", "--map-root-user")
		if out, err := exec.Command("unshare", append(namespaces, "true")...).CombinedOutput(); err != nil {
			t.Fatalf("%s: run `make test-privileged` as root (in a container with --cap-add SYS_ADMIN), or where users may make namespaces", out)
		}
	}
	cmd := exec.CommandContext(ctx, "unshare", append(namespaces, "sh", "clients/amqp091-go/run.sh",
		mustBinary(t, release), mustBinary(t, ownTests), moduleFolder(t, "github.com/rabbitmq/amqp091-go"), t.TempDir())...)
	cmd.Env = environment(nil)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
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

func moduleFolder(t testing.TB, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	check(t, err)
	return strings.TrimSpace(string(out))
}
