package faults

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/faults/history"
)

// trial is one data folder over several lives of a process, with one log.
type trial struct {
	t        *testing.T
	seed     uint64
	random   *rand.Rand // of the plan; for the test's goroutine
	dir      string
	settings []string // of the process, besides
	file     *os.File
	log      *history.Log
	process  *process
	life     int

	accepted10, delivered10 atomic.Int64 // what AMQP 1.0 had a part in
}

func newTrial(t *testing.T, dir string) *trial {
	t.Helper()
	seed := environment(t, "FAULTS_SEED", uint64(time.Now().UnixNano()))
	file, err := os.CreateTemp("", "curfew-history-*.jsonl")
	check(t, err)
	tr := &trial{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), dir: dir, file: file, log: history.NewLog(file)}
	t.Logf("FAULTS_SEED=%d", seed)
	t.Cleanup(tr.keep)
	return tr
}

// environment is an unsigned integer from the environment.
func environment(t testing.TB, name string, unset uint64) uint64 {
	text, ok := os.LookupEnv(name)
	if !ok {
		return unset
	}
	n, err := strconv.ParseUint(text, 10, 64)
	check(t, err)
	return n
}

// keep leaves the log of a failed test behind, with what it takes to look into it.
func (tr *trial) keep() {
	if err := tr.log.Flush(); err != nil {
		tr.t.Error(err)
	}
	tr.file.Close()
	if !tr.t.Failed() {
		os.Remove(tr.file.Name())
		return
	}
	tr.t.Logf("again: FAULTS_SEED=%d go test ./integration/faults -run '^%s$'", tr.seed, strings.Split(tr.t.Name(), "/")[0])
	tr.t.Logf("its log: go run ./integration/faults/historycheck %s", tr.file.Name())
	if tr.process != nil {
		out := tr.process.out.String()
		tr.t.Logf("curfew's last words:\n%s", out[max(0, len(out)-4000):])
	}
}

// start begins a life and does not wait for it to be ready.
func (tr *trial) start() {
	tr.t.Helper()
	tr.startUnder("")
}

func (tr *trial) startUnder(limits string) {
	tr.t.Helper()
	tr.life++
	tr.log.Append(history.Event{Kind: history.Started, At: now()})
	tr.process = launchUnder(tr.t, limits, tr.dir, tr.settings...)
}

// ended notes the end of a life that every client has noticed.
func (tr *trial) ended(how string) {
	tr.log.Append(history.Event{Kind: history.Ended, At: now(), How: how})
}

// killed ends a life in which no client is left.
func (tr *trial) killed() {
	tr.process.kill()
	tr.ended(history.Killed)
}

// stopped ends a life in which no client is left, and holds it to a clean end.
func (tr *trial) stopped() {
	tr.t.Helper()
	if code := tr.process.stop(); code != 0 {
		tr.t.Errorf("curfew ended with code %d after SIGTERM", code)
	}
	tr.ended(history.Stopped)
}

// dial connects; the connection ends with the test at the latest.
func (tr *trial) dial() *amqp091.Connection {
	tr.t.Helper()
	conn, err := amqp091.Dial(tr.process.url())
	check(tr.t, err)
	tr.t.Cleanup(func() { conn.Close() })
	return conn
}

// judge checks the history so far, which must end drained.
func (tr *trial) judge() *history.Report {
	tr.t.Helper()
	check(tr.t, tr.log.Flush())
	f, err := os.Open(tr.file.Name())
	check(tr.t, err)
	defer f.Close()
	report, err := history.Check(f)
	check(tr.t, err)
	var text strings.Builder
	report.Write(&text)
	tr.t.Logf("\n%s", &text)
	if !report.OK() || !report.Drained {
		tr.t.Error("the history breaks a rule, or is not complete")
	}
	return report
}

func now() int64 { return time.Now().UnixMicro() }
