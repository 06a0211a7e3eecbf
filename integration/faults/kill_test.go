package faults

import (
	"syscall"
	"testing"
	"time"

	"curfew/integration/faults/history"
	"curfew/integration/testenv"
)

// TestKilled kills the process at random moments, some of them while it starts and
// recovers, with publishers and consumers of both protocols, dead-lettering and eager expiry at work, and
// starts it again on what it left, with a schedule of its own or in Redis. Then all is
// taken out, and every message any client ever saw is accounted for.
func TestKilled(t *testing.T) {
	t.Parallel()
	kills := environment(t, "FAULTS_KILLS", usualKills())
	tr := newTrial(t, t.TempDir())
	redis := "REDIS_URL=" + testenv.StartRedis(t).URL
	tr.tell()
	for i := range kills {
		if i%20 == 0 {
			t.Logf("%d of %d kills", i, kills)
		}
		tr.settings = []string{tr.pick(syncModes), tr.pick([]string{redis, "REDIS_URL=", "REDIS_URL=", "MONITOR=false"})}
		tr.liveAndDie()
	}
	tr.settings = nil
	report := tr.lastLife()
	if report.Kills != int(kills) {
		t.Errorf("%d kills, not %d", report.Kills, kills)
	}
	busy(t, report)
	accepted, delivered := tr.accepted10.Load(), tr.delivered10.Load()
	if t.Logf("over AMQP 1.0: %d answered, %d delivered", accepted, delivered); min(accepted, delivered) < int64(report.Published/20) {
		t.Error("the clients of AMQP 1.0 had too small a part in it")
	}
}

// syncModes: where only the process dies, all of them keep what was confirmed.
var syncModes = []string{"STORE_SYNC=group", "STORE_SYNC=group", "STORE_SYNC=interval", "STORE_SYNC=never"}

func (tr *trial) pick(settings []string) string { return settings[tr.random.IntN(len(settings))] }

func usualKills() uint64 {
	if testing.Short() {
		return 6
	}
	return 20
}

// liveAndDie is one life that is killed.
func (tr *trial) liveAndDie() {
	tr.t.Helper()
	tr.start()
	if tr.random.IntN(6) == 0 {
		pause(tr.random.Int64N(80))
		tr.killed()
		return
	}
	tr.process.ready()
	tr.declare()
	l := tr.load()
	pause(100 + tr.random.Int64N(1700))
	tr.process.kill()
	l.cut()
	tr.ended(history.Killed)
}

// pause lets the process run on for that many ms.
func pause(millis int64) { <-time.After(time.Duration(millis) * time.Millisecond) }

// lastLife takes out all there is, and looks once more, after an orderly stop, whether
// anything comes back.
func (tr *trial) lastLife() *history.Report {
	tr.t.Helper()
	for range 2 {
		tr.start()
		tr.process.ready()
		tr.declare()
		tr.drain()
		tr.stopped()
	}
	return tr.judge()
}

// busy holds a history to having had something of everything, so that it proves
// something.
func busy(t *testing.T, r *history.Report) {
	t.Helper()
	for _, end := range []string{
		"acked", "rejected", "dead-lettered (expired) and acked", "dead-lettered (rejected) and acked", "dead-lettered (maxlen) and acked",
	} {
		if r.Ends[end] == 0 {
			t.Errorf("no message was %s", end)
		}
	}
	if r.Durable == 0 || r.Redelivered == 0 || r.Confirmed < r.Published/2 {
		t.Errorf("%d of %d confirmed, %d redelivered, %d ends durable: too little happened", r.Confirmed, r.Published, r.Redelivered, r.Durable)
	}
}

// TestKilledWhileStarting: a process killed at any moment of its start leaves what it
// found, queues and bindings included.
func TestKilledWhileStarting(t *testing.T) {
	t.Parallel()
	tr := newTrial(t, t.TempDir())
	tr.tell()
	tr.start()
	tr.process.ready()
	tr.declare()
	p, err := newPublisher(tr.log, tr.dial(), "p")
	check(t, err)
	for range 20 {
		for _, q := range queues[:5] {
			check(t, p.send(&message{key: q.name, queues: []string{q.name}, persistent: true, body: noise[:100]}))
		}
	}
	if !p.settled() {
		t.Fatal("not all was confirmed")
	}
	tr.killed()
	for i := range 25 {
		tr.start()
		pause(int64(2 * i))
		tr.killed()
	}
	tr.lastLife()
}

// TestStoppedUnderLoad: SIGTERM in the middle of the same load ends the process with
// code 0, and nothing that was confirmed or settled is undone.
func TestStoppedUnderLoad(t *testing.T) {
	tr := newTrial(t, t.TempDir())
	tr.tell()
	for range 3 {
		tr.start()
		tr.process.ready()
		tr.declare()
		l := tr.load()
		pause(500 + tr.random.Int64N(700))
		tr.process.signal(syscall.SIGTERM)
		if code := tr.process.wait(); code != 0 {
			t.Errorf("curfew ended with code %d after SIGTERM", code)
		}
		l.cut()
		tr.ended(history.Stopped)
	}
	busy(t, tr.lastLife())
}
