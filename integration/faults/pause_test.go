package faults

import (
	"syscall"
	"testing"
	"time"

	"curfew/integration/faults/history"
	"curfew/integration/testenv"
)

const (
	pausedCount = 400
	pausedHeld  = 20
	// resumeLimit is generous: what is judged is that what came due meanwhile fires by
	// itself, not after some scan that comes around (every minute).
	resumeLimit = 20 * time.Second
)

// TestPaused stops the process for some seconds, as a frozen container or a suspended
// machine is, while deadlines pass. Once it goes on, all that is due fires at once,
// none early and none twice; connections are still there; and what consumers held
// stays theirs, but expires when it is given back. With Redis it is stopped for longer
// than it has claimed deadlines for.
func TestPaused(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) { paused(t, 3000) })
	t.Run("redis", func(t *testing.T) { paused(t, 11_000, "REDIS_URL="+testenv.StartRedis(t).URL) })
}

func paused(t *testing.T, millis int64, settings ...string) {
	tr := newTrial(t, t.TempDir())
	tr.settings = settings
	tr.tell()
	tr.start()
	tr.process.ready()
	tr.declare()
	if settings != nil {
		tr.scheduleUp()
	}
	conn := tr.dial()
	dying := tr.collect(conn, "dying", dead, true)
	holder := tr.collect(conn, "holder", work, false)
	p, err := newPublisher(tr.log, conn, "p")
	check(t, err)
	check(t, p.send(&message{key: waiting, queues: []string{waiting}, ttlMillis: new(time.Hour.Milliseconds()), persistent: true}))
	for range pausedCount {
		check(t, p.send(&message{key: waiting, queues: []string{waiting}, ttlMillis: new(300 + tr.random.Int64N(millis-500)), persistent: true}))
	}
	for range pausedHeld {
		check(t, p.send(&message{key: work, queues: []string{work}, ttlMillis: new(500 + tr.random.Int64N(500)), persistent: true}))
	}
	if !p.settled() {
		t.Fatal("not all was confirmed")
	}
	eventually(t, startLimit, "the held messages", func() bool { return holder.count() == pausedHeld })

	tr.process.signal(syscall.SIGSTOP)
	pause(millis)
	resumed := time.Now()
	tr.process.signal(syscall.SIGCONT)
	eventually(t, resumeLimit, "what came due to be dead-lettered", func() bool { return dying.count() == pausedCount })
	t.Logf("all within %v of the end of the pause", time.Since(resumed))

	for i := range pausedHeld / 2 {
		holder.settle(i, history.Ack)
	}
	for i := pausedHeld / 2; i < pausedHeld; i++ {
		holder.settle(i, history.Requeue)
	}
	eventually(t, resumeLimit, "what was given back to be dead-lettered", func() bool { return dying.count() == pausedCount+pausedHeld/2 })
	if n := holder.count(); n != pausedHeld {
		t.Errorf("the holder got %d deliveries, not %d", n, pausedHeld)
	}
	eventually(t, resumeLimit, "no deadline but the hour-long one to be pending", func() bool {
		return tr.process.metric("curfew_deadlines_pending") == 1
	})
	holder.close()
	dying.close()
	tr.drain()
	tr.stopped()
	tr.judge()
}
