package integration

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"curfew/integration/testenv"
)

// celeryApp is the application of clients/celery with Curfew as its broker.
type celeryApp struct {
	t   testing.TB
	env []string
}

func newCeleryApp(t testing.TB, broker *curfew) celeryApp {
	needs(t, "python3-celery", "/usr/bin/python3", "-c", "import celery")
	return celeryApp{t, append(os.Environ(), "BROKER_URL="+broker.url+"//", "C_FORCE_ROOT=1", "PYTHONDONTWRITEBYTECODE=1")}
}

func (a celeryApp) python(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/usr/bin/python3", args...)
	cmd.Dir, cmd.Env = "clients/celery", a.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// worker starts a worker on the queue and returns once it consumes. It ends with the test.
func (a celeryApp) worker(queue string) {
	a.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	output := new(testenv.Log)
	cmd := a.python(ctx, "-m", "celery", "-A", "app", "worker", "--pool=solo", "--loglevel=INFO", "-Q", queue, "-n", queue+"@%h")
	cmd.Stdout, cmd.Stderr = output, output
	check(a.t, cmd.Start())
	ended := inBackground(cmd.Wait)
	a.t.Cleanup(func() {
		cancel()
		ended()
		if a.t.Failed() {
			a.t.Logf("the worker of %s:\n%s", queue, output.Tail(4000))
		}
	})
	eventually(a.t, clientLimit, "a Celery worker", func() bool { return strings.Contains(output.String(), "ready.") })
}

// run has the application send tasks and reads what it says of them.
func (a celeryApp) run(result any, args ...string) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clientLimit)
	defer cancel()
	cmd := a.python(ctx, append([]string{"run.py"}, args...)...)
	stderr := new(testenv.Log)
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		a.t.Fatalf("run.py %s: %v\n%s", args, err, stderr.Tail(4000))
	}
	check(a.t, json.Unmarshal(out, result))
}

// TestCelery: a Celery application works unchanged: results, retries, eta, tasks that are too late, remote control.
func TestCelery(t *testing.T) {
	t.Parallel()
	app := newCeleryApp(t, startCurfew(t))
	app.worker("celery")
	var got struct {
		Sums       []int
		Retries    int
		EarlyS     float64 `json:"early_s"`
		TooLateRan bool    `json:"too_late_ran"`
		Pong       int
	}
	app.run(&got, "tasks", filepath.Join(t.TempDir(), "ran"))
	for i, sum := range got.Sums {
		if sum != 2*i {
			t.Errorf("%d + %d gave %d", i, i, sum)
		}
	}
	if len(got.Sums) != 200 || got.Retries != 2 || got.TooLateRan || got.Pong != 1 {
		t.Errorf("the application got %+v", got)
	}
	if got.EarlyS > 0 {
		t.Errorf("a task ran %v s before its eta", got.EarlyS)
	}
}

// TestCeleryDeadline: a task whose expiration passes while no worker is there leaves the queue at that moment, and the task behind it
// is still there for the worker that comes.
func TestCeleryDeadline(t *testing.T) {
	t.Parallel()
	broker := startCurfew(t)
	app := newCeleryApp(t, broker)
	var sent struct{ Kept string }
	app.run(&sent, "late", "slow")
	eventually(t, answerLimit, "the task to expire", func() bool { return broker.metric("curfew_deadlines_fired_total") == 1 })
	if left := readyCount(t, broker.url, "slow"); left != 1 {
		t.Errorf("%d tasks are queued, not the one without a deadline", left)
	}
	app.worker("slow")
	eventually(t, answerLimit, "the other to be taken", func() bool { return readyCount(t, broker.url, "slow") == 0 })
}

// TestCeleryHeaders: a policy names Celery's own headers. A task with a countdown is in no queue until its eta, and one that is too late leaves its
// queue at that moment, with no worker there.
func TestCeleryHeaders(t *testing.T) {
	t.Parallel()
	broker := startCurfew(t)
	broker.setPolicy("celery", "^slow$", "queues", `{"delay-header":"eta","deadline-header":"expires"}`)
	app := newCeleryApp(t, broker)
	var sent struct{ Eta float64 }
	app.run(&sent, "headers", "slow")
	eventually(t, answerLimit, "the task to expire", func() bool { return broker.metric("curfew_deadlines_fired_total") == 1 })
	if left := readyCount(t, broker.url, "slow"); left != 1 && time.Now().Before(time.UnixMilli(int64(sent.Eta*1000)-1)) {
		t.Errorf("%d tasks are queued, not the one without eta and expires", left)
	}
	eventually(t, answerLimit, "the eta to come", func() bool { return readyCount(t, broker.url, "slow") == 2 })
}

// TestCeleryWorkerDies: a worker that dies with a task unacked gives it to the next, marked redelivered.
func TestCeleryWorkerDies(t *testing.T) {
	t.Parallel()
	app := newCeleryApp(t, startCurfew(t))
	app.worker("celery")
	app.worker("celery")
	var got struct{ Redelivered bool }
	app.run(&got, "die", filepath.Join(t.TempDir(), "died"))
	if !got.Redelivered {
		t.Error("the second worker was not told that the task is redelivered")
	}
}
