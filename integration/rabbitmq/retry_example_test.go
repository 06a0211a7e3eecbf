package rabbitmq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/testenv"
)

const retryExample = "../../deploy/examples/retry/"

// TestRetryExample runs the worker of deploy/examples/retry in each language against a quorum queue that is kept. Each job comes back when
// its own delay has passed, in the order of these times, although a job that waits an hour is at the head of the queue.
func TestRetryExample(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	for language, command := range map[string]func(*testing.T) *exec.Cmd{
		"go": goWorker, "python": pythonWorker, "node": nodeWorker, "java": javaWorker,
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			vhost, url := n.vhost(t)
			curfew := serveExample(t, n, url)
			w := runWorker(t, command(t), url)
			ch := openChannel(t, dial(t, url))
			check(t, ch.Confirm(false))

			// RabbitMQ alone brings nothing back while this job is at the head.
			publishJob(t, ch, "retry", "jobs", "hour 0", amqp091.Publishing{Expiration: "3600000"})
			if language == "go" {
				plannedAsKept(t, n, vhost, "retry")
			}
			eventually(t, answerLimit, "the queue to be kept", func() bool { return curfew.keeps()["retry"] == 1 })

			// A name, how often the job has failed and how often it will: the first delay is 2^failed seconds.
			for _, job := range []struct {
				name        string
				failed, all int
			}{{"slow", 3, 4}, {"middle", 1, 2}, {"again", 0, 2}, {"broken", 5, 9}, {"good", 0, 0}} {
				publishJob(t, ch, "", "jobs", fmt.Sprintf("%s %d", job.name, job.all), amqp091.Publishing{Headers: table{"retries": int32(job.failed)}})
			}
			w.expect(t, map[string][]string{
				"slow":   {"failed, again in 8 s", "done after 4 retries"},
				"middle": {"failed, again in 2 s", "done after 2 retries"},
				"again":  {"failed, again in 1 s", "failed, again in 2 s", "done after 2 retries"},
				"broken": {"failed for good"},
				"good":   {"done after 0 retries"},
			})
			w.expectOrderOfDeadlines(t)
			failed, ok, err := ch.Get("failed", true)
			if err != nil || !ok || string(failed.Body) != "broken 9" {
				t.Errorf("in the queue of failed jobs is %q: %v", failed.Body, err)
			}
			eventually(t, answerLimit, "only the first one to be held", func() bool { return curfew.keeps()["retry"] == 1 })
			if r := curfew.queue("retry").LastRelease; r != nil {
				t.Errorf("the queue was given up: %+v", r)
			}
		})
	}
}

// serveExample runs Curfew with the commands of the example's page.
func serveExample(t *testing.T, n *node, url string) *replica {
	t.Helper()
	text, err := os.ReadFile(retryExample + "README.md")
	check(t, err)
	const address, api = "amqp://guest:guest@127.0.0.1:5672/%2F", "http://127.0.0.1:15672"
	var commands []string
	for _, line := range regexp.MustCompile(`(?m)^(export .*|.* curfew serve)$`).FindAllStringSubmatch(string(text), -1) {
		commands = append(commands, line[1])
	}
	written := strings.Join(commands, "\n")
	if len(commands) != 3 || !strings.Contains(written, address) || !strings.Contains(written, api) {
		t.Fatalf("the page runs Curfew with %q", written)
	}
	return serveAsWritten(t, strings.NewReplacer(address, url, api, n.http).Replace(written))
}

func publishJob(t *testing.T, ch *amqp091.Channel, exchange, key, job string, p amqp091.Publishing) {
	t.Helper()
	p.Body, p.DeliveryMode = []byte(job), amqp091.Persistent
	confirm, err := ch.PublishWithDeferredConfirm(exchange, key, false, false, p)
	check(t, err)
	if ok, err := confirm.WaitContext(t.Context()); !ok || err != nil {
		t.Fatalf("%s is not confirmed: %v", job, err)
	}
}

// plannedAsKept checks that curfew rabbitmq plan has no reason against keeping the queue as the example declares it.
func plannedAsKept(t *testing.T, n *node, vhost, queue string) {
	t.Helper()
	var plan struct {
		Queues []struct{ Queue, Deadlines, Reason string }
	}
	env := []string{"CURFEW_PRIMARY_URL=" + n.url + "/" + vhost, "CURFEW_PRIMARY_API_URL=" + n.http, "CURFEW_WATCH=keep:" + queue}
	check(t, json.Unmarshal([]byte(run(t, env, "", "rabbitmq", "plan", "-o", "json")), &plan))
	for _, row := range plan.Queues {
		if row.Queue == queue && row.Deadlines == "kept" {
			return
		}
	}
	t.Errorf("the plan does not keep %s: %+v", queue, plan.Queues)
}

// worker is a running worker of the example: what it has printed, and when.
type worker struct {
	mu   sync.Mutex
	said []sentence
	rest []byte // of a line that has not ended
}

type sentence struct {
	at   time.Time
	job  string // empty: of none
	text string
}

func (w *worker) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, p...)
	for {
		line, rest, whole := bytes.Cut(w.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		w.rest = rest
		job, text, ofJob := strings.Cut(string(line), ": ")
		if !ofJob {
			job, text = "", string(line)
		}
		w.said = append(w.said, sentence{time.Now(), job, text})
	}
}

func (w *worker) sentences() []sentence {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said[:len(w.said):len(w.said)]
}

// runWorker starts the worker, as a supervisor would: again if it ends before it waits for jobs. RabbitMQ 3.10 on a starved machine sometimes
// refuses to declare a quorum queue (cluster_not_formed), and the next try succeeds.
func runWorker(t *testing.T, cmd *exec.Cmd, url string) *worker {
	t.Helper()
	w, log := new(worker), new(testenv.Log)
	var own *exec.Cmd
	ended := make(chan error, 1)
	start := func() {
		own = command(log, append([]string{"AMQP_URL=" + url}, cmd.Env...), cmd.Path, cmd.Args[1:]...)
		own.Stdout = io.MultiWriter(w, log)
		check(t, own.Start())
		go func(c *exec.Cmd) { ended <- c.Wait() }(own)
	}
	start()
	t.Cleanup(func() {
		syscall.Kill(-own.Process.Pid, syscall.SIGKILL)
		<-ended
		if t.Failed() {
			t.Logf("the worker said:\n%s", log)
		}
	})
	eventually(t, time.Minute, "the worker", func() bool {
		if said := w.sentences(); len(said) > 0 {
			return said[0].text == "waiting for jobs"
		}
		select {
		case err := <-ended:
			t.Logf("the worker ended at its start, and is started again: %v", err)
			start()
		default:
		}
		return false
	})
	return w
}

// expect waits until the worker has printed for each job what it should, and nothing else.
func (w *worker) expect(t *testing.T, want map[string][]string) {
	t.Helper()
	count := 0
	for _, texts := range want {
		count += len(texts)
	}
	eventually(t, time.Minute, "all jobs to end", func() bool { return len(w.sentences()) > count })
	got := map[string][]string{}
	for _, s := range w.sentences()[1:] {
		got[s.job] = append(got[s.job], s.text)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the worker said %v, want %v", got, want)
	}
}

// expectOrderOfDeadlines checks that of two waiting jobs the one that is due first comes back first. Deadlines are known to within the time
// that a line takes to arrive here, so those closer than half a second are not compared.
func (w *worker) expectOrderOfDeadlines(t *testing.T) {
	t.Helper()
	type wait struct {
		job       string
		due, back time.Time
	}
	var waits []wait
	open := map[string]int{} // by job: its wait, plus one
	for _, s := range w.sentences() {
		if at := open[s.job]; at > 0 {
			waits[at-1].back, open[s.job] = s.at, 0
		}
		if _, delay, again := strings.Cut(s.text, "again in "); again {
			seconds, err := strconv.Atoi(strings.TrimSuffix(delay, " s"))
			check(t, err)
			waits = append(waits, wait{job: s.job, due: s.at.Add(time.Duration(seconds) * time.Second)})
			open[s.job] = len(waits)
		}
	}
	if len(waits) != 4 {
		t.Fatalf("%d jobs waited", len(waits))
	}
	for i, a := range waits {
		t.Logf("%s came back %v after its deadline", a.job, a.back.Sub(a.due).Round(time.Millisecond))
		for _, b := range waits[i+1:] {
			if later := b.due.Sub(a.due); later.Abs() > time.Second/2 && (later > 0) != b.back.After(a.back) {
				t.Errorf("%s was due %v before %s, and came back %v before it", a.job, later, b.job, b.back.Sub(a.back))
			}
		}
	}
}

// goWorker is built in the example's own module.
func goWorker(t *testing.T) *exec.Cmd {
	path := filepath.Join(scratch, "retry-worker")
	build := exec.Command("go", "build", "-trimpath", "-o", path, ".")
	build.Dir = retryExample + "go"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exec.Command(path)
}

func pythonWorker(t *testing.T) *exec.Cmd {
	if out, err := exec.Command("/usr/bin/python3", "-c", "import pika").CombinedOutput(); err != nil {
		t.Fatalf("pika is needed: apt-get install -y --no-install-recommends python3-pika (or `make deps`): %v\n%s", err, out)
	}
	return exec.Command("/usr/bin/python3", retryExample+"python/worker.py")
}

func nodeWorker(t *testing.T) *exec.Cmd {
	modules, err := filepath.Abs("../../.cache/node/node_modules")
	check(t, err)
	if _, err := os.Stat(filepath.Join(modules, "amqplib")); err != nil {
		t.Fatal("Node's amqplib is needed: make deps")
	}
	cmd := exec.Command("node", retryExample+"node/worker.js")
	cmd.Env = []string{"NODE_PATH=" + modules}
	return cmd
}

func javaWorker(t *testing.T) *exec.Cmd {
	const classes = "/usr/share/java/amqp-client.jar:/usr/share/java/slf4j-api.jar:/usr/share/java/slf4j-nop.jar"
	if _, err := exec.LookPath("javac"); err != nil {
		t.Fatal("Java's client is needed: apt-get install -y --no-install-recommends default-jdk-headless librabbitmq-client-java (or `make deps`)")
	}
	return exec.Command("java", "-XX:TieredStopAtLevel=1", "-cp", classes, retryExample+"java/Worker.java")
}
