package faults

import "testing"

const (
	roundCount = 300 // messages of each round
	roundDue   = 2000
)

// rounds is a publisher of messages that nobody takes before their deadlines, and the
// consumer of what becomes of them.
type rounds struct {
	tr    *trial
	p     *publisher
	dying *collector
	sent  int
}

func (tr *trial) rounds() *rounds {
	tr.t.Helper()
	conn := tr.dial()
	r := &rounds{tr: tr, dying: tr.collect(conn, "dying", dead, true)}
	var err error
	r.p, err = newPublisher(tr.log, conn, "p")
	check(tr.t, err)
	return r
}

// publish sends one round, due within that many ms, and sees it confirmed.
func (r *rounds) publish(t testing.TB, what string, dueMillis int64) {
	t.Helper()
	for range roundCount {
		check(t, r.p.send(&message{key: waiting, queues: []string{waiting}, ttlMillis: new(100 + r.tr.random.Int64N(dueMillis)), persistent: true}))
	}
	if !r.p.settled() {
		t.Fatalf("%s: not all was confirmed", what)
	}
	r.sent += roundCount
}

// run publishes a round and waits until all rounds are dead-lettered.
func (r *rounds) run(what string) {
	r.tr.t.Helper()
	r.publish(r.tr.t, what, roundDue)
	eventually(r.tr.t, answerLimit, what+": all to be dead-lettered", func() bool { return r.dying.count() == r.sent })
}

// end drains what is left and judges the history.
func (r *rounds) end() {
	r.tr.t.Helper()
	r.dying.close()
	r.tr.drain()
	r.tr.stopped()
	r.tr.judge()
}
