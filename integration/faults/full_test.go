package faults

import (
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	diskSize  = "24m"
	ballast   = 6 << 20
	fullBody  = 8 << 10
	dueOnFull = 300 // messages that expire while the disk is full
	fullLimit = 2 * time.Minute
)

// TestDiskFull fills a small disk by publishing. Publishers are told, and their
// connections are no longer read; consumers and deadlines go on; health says why. It goes on by itself when
// somebody makes room on the disk, and when consumers do. Then the process is killed
// on a full disk, and starts on it. Nothing that was confirmed is lost.
func TestDiskFull(t *testing.T) {
	tr := newTrial(t, tinyDisk(t, diskSize))
	tr.settings = []string{"DISK_FREE_LIMIT=0"} // by which publishers may be blocked on a disk that still takes what they have sent
	free := fill(t, tr.dir, ballast)
	tr.tell()
	tr.start()
	tr.process.ready()
	tr.declare()
	dying := tr.collect(tr.dial(), "dying", dead, true)
	f := tr.fullPublisher("p1")
	silent := tr.silentPublisher("p2")
	for i := range dueOnFull {
		check(t, f.send(&message{key: waiting, queues: []string{waiting}, ttlMillis: new(4000 + int64(i)), persistent: true, body: noise[:100]}))
	}
	if !f.settled() {
		t.Fatal("not all was confirmed")
	}

	f.untilBlocked(t)
	silent.publish(t)
	blocked(t, tr.process)
	eventually(t, fullLimit, "deadlines to fire on a full disk", func() bool { return dying.count() == dueOnFull })
	silent.unanswered(t)

	free()
	f.untilGoesOn(t)
	silent.answered(t)
	healthy(t, tr.process)

	f.untilBlocked(t)
	blocked(t, tr.process)
	workers := tr.collect(tr.dial(), "consumer", work, true)
	f.untilGoesOn(t)
	healthy(t, tr.process)
	workers.close()

	f.untilBlocked(t)
	tr.process.kill()
	<-f.cut
	<-silent.ended
	eventually(t, fullLimit, "clients to notice", func() bool { return dying.count() < 0 })
	tr.ended("killed")
	tr.lastLife()
}

func blocked(t *testing.T, p *process) {
	t.Helper()
	eventually(t, fullLimit, "health to say why publishers are blocked", func() bool {
		h := p.health()
		return strings.Contains(h, `"status":"critical"`) && strings.Contains(h, "Publishers are blocked: low on disk")
	})
}

func healthy(t *testing.T, p *process) {
	t.Helper()
	eventually(t, fullLimit, "health to be ok again", func() bool { return strings.Contains(p.health(), `"status":"ok"`) })
}

// fullPublisher is a publisher that fills the disk until it is told to wait.
type fullPublisher struct {
	*publisher
	blocked chan amqp091.Blocking
	filling chan error // of the goroutine that fills
}

func (tr *trial) fullPublisher(name string) *fullPublisher {
	tr.t.Helper()
	conn := tr.dial()
	blocked := conn.NotifyBlocked(make(chan amqp091.Blocking, 16))
	p, err := newPublisher(tr.log, conn, name)
	check(tr.t, err)
	return &fullPublisher{publisher: p, blocked: blocked}
}

// untilBlocked publishes until connection.blocked comes.
func (f *fullPublisher) untilBlocked(t *testing.T) {
	t.Helper()
	stop := make(chan struct{})
	f.filling = make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				f.filling <- nil
				return
			default:
			}
			body := noise[i%1000:][:fullBody]
			if err := f.send(&message{key: work, queues: []string{work}, persistent: true, body: body}); err != nil {
				f.filling <- err
				return
			}
		}
	}()
	defer close(stop)
	select {
	case b := <-f.blocked:
		if !b.Active || !strings.Contains(b.Reason, "disk") {
			t.Fatalf("told %+v", b)
		}
	case err := <-f.filling:
		t.Fatalf("the publisher was cut off: %v", err)
	case <-time.After(fullLimit):
		t.Fatal("the disk did not get full, or publishers were not told")
	}
}

// untilGoesOn waits for connection.unblocked, and for all that was published on the
// full disk to be confirmed.
func (f *fullPublisher) untilGoesOn(t *testing.T) {
	t.Helper()
	select {
	case b := <-f.blocked:
		if b.Active {
			t.Fatalf("told %+v", b)
		}
	case <-time.After(fullLimit):
		t.Fatal("publishers were not told that there is room again")
	}
	if err := <-f.filling; err != nil {
		t.Fatalf("the publisher was cut off: %v", err)
	}
	if !f.settled() {
		t.Fatal("what was published on a full disk was not confirmed")
	}
}
