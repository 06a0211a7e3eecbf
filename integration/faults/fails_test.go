package faults

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/faults/history"
)

const answerLimit = 2 * time.Minute

// TestDiskFails breaks the disk under a load. The process ends by itself, with the
// reason and a code other than 0, and what it had confirmed is there once the disk is.
func TestDiskFails(t *testing.T) {
	d := ownDisk(t)
	tr := newTrial(t, d.dir)
	tr.tell()
	tr.start()
	tr.process.ready()
	tr.declare()
	l := tr.load()
	pause(1500)
	d.fail()
	code, out := tr.process.wait(), &tr.process.out
	if code == 0 {
		t.Error("it ended with code 0")
	}
	for _, text := range []string{"journal has failed", "start Curfew again to recover"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the output does not name %q:\n%s", text, out.String())
		}
	}
	l.cut()
	tr.ended(history.Killed)
	d.mend()
	busy(t, tr.lastLife())
}

// TestDiskStandsStill has the disk answer nothing for a while. Confirms of persistent
// messages wait; deliveries, deadlines and heartbeats do not; then all goes on.
func TestDiskStandsStill(t *testing.T) {
	d := ownDisk(t)
	tr := newTrial(t, d.dir)
	tr.tell()
	tr.start()
	tr.process.ready()
	tr.declare()
	conn := tr.dial()
	dying, taking := tr.collect(conn, "dying", dead, true), tr.collect(conn, "taking", work, true)
	p, err := newPublisher(tr.log, conn, "p")
	check(t, err)
	const count = 200
	for range count {
		check(t, p.send(&message{key: waiting, queues: []string{waiting}, ttlMillis: new(500 + tr.random.Int64N(1500)), persistent: true}))
	}
	if !p.settled() {
		t.Fatal("not all was confirmed")
	}

	thaw := d.freeze()
	check(t, p.many(work, count/2, 100))
	eventually(t, answerLimit, "deliveries while the disk stands still", func() bool { return taking.count() == count/2 })
	eventually(t, answerLimit, "deadlines to fire while the disk stands still", func() bool { return dying.count() == count })
	eventually(t, answerLimit, "health to say that the disk stands still", func() bool { return strings.Contains(tr.process.health(), "The disk does not answer: for") })
	if wait := tr.process.metric("curfew_journal_disk_wait_seconds"); wait < 5 {
		t.Errorf("the metric says that the disk has not answered for %v s", wait)
	}
	if unanswered := len(p.slots); unanswered != count/2 {
		t.Errorf("%d persistent messages were confirmed while the disk stood still", count/2-unanswered)
	}
	thaw()
	if !p.settled() {
		t.Fatal("not all was confirmed afterwards")
	}
	taking.close()
	dying.close()
	tr.drain()
	tr.stopped()
	tr.judge()
}

const (
	filesLimit = 128
	filesCount = 800 // messages, of filesBytes: several files of the journal
	filesBytes = 16 << 10
)

// TestFilesRunOut has more clients than the process may have files open, of AMQP, the
// management API and health. Those that got in keep working, and publish more than fits
// into the files that were open then; health answers and reports it; others come in when
// they go.
func TestFilesRunOut(t *testing.T) {
	tr := newTrial(t, t.TempDir())
	tr.tell()
	tr.startUnder(fmt.Sprint("ulimit -n ", filesLimit))
	tr.process.ready()
	tr.declare()
	taking := tr.collect(tr.dial(), "taking", work, true)
	conn := tr.dial()
	p, err := newPublisher(tr.log, conn, "p")
	check(t, err)
	for _, url := range []string{tr.process.word("Dashboard"), tr.process.word("Health")} {
		tr.silent(url, 2*filesLimit)
	}
	crowd := tr.crowd()
	eventually(t, answerLimit, "health to tell that connections are refused", func() bool {
		return strings.Contains(tr.process.health(), "connections are refused")
	})

	sent := make(chan error, 1)
	go func() { sent <- p.many(work, filesCount, filesBytes) }()
	eventually(t, answerLimit, "all that was published to be delivered and confirmed", func() bool {
		return taking.count() == filesCount && len(p.slots) == 0
	})
	check(t, <-sent)
	for _, c := range crowd {
		c.Close()
	}
	taking.close()
	check(t, conn.Close())
	tr.drain()
	tr.stopped()
	tr.judge()
}

// silent opens n connections to the address of a URL and sends nothing. Most are closed
// for others; nobody else is kept out.
func (tr *trial) silent(url string, n int) {
	tr.t.Helper()
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	for range n {
		c, err := net.DialTimeout("tcp", host, answerLimit)
		check(tr.t, err)
		tr.t.Cleanup(func() { c.Close() })
	}
}

// crowd connects until there is no answer.
func (tr *trial) crowd() (conns []*amqp091.Connection) {
	tr.t.Helper()
	for range filesLimit {
		conn, err := amqp091.DialConfig(tr.process.url(), amqp091.Config{Dial: amqp091.DefaultDial(5 * time.Second)})
		if err != nil {
			return conns
		}
		tr.t.Cleanup(func() { conn.Close() })
		conns = append(conns, conn)
	}
	tr.t.Fatal("there are more connections than files")
	return nil
}
