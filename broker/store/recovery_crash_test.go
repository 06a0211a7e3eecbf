package store

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// script is one life of a store, in steps that make the same disk operations each time.
type script struct {
	name  string
	steps []func(*trial)
}

// scripts together make every operation that the store makes on a disk.
var scripts = []script{
	{"publish and ack", []func(*trial){publish(3), commit1, ack(1), publish(2), commit1, ack(2), commit1, synced, publish(1)}},
	{"dead-letter", []func(*trial){publish(4), commit1, move(2), commit1, move(1), ack(1), commit1}},
	{"purge", []func(*trial){publish(12), commit1, ack(12), commit1, publish(2), commit1}},
	{"amend", []func(*trial){publish(3), amend, commit1, amend, amend, commit1, roll, amend, maintain, commit1, synced}},
	{"roll and drop", []func(*trial){publish(3), roll, ack(2), roll, publish(1), commit1, maintain, roll, maintain, ack(1), commit1, maintain}},
	{"compact", []func(*trial){
		publish(12), amend, roll, ack(10), amend, roll, roll, roll, maintain, commit1, amend, ack(1), roll, maintain, maintain, commit1,
	}},
	{"transact", []func(*trial){
		publish(3), commit1, transact(2, 2), commit1, transact(perRecord+1, 0), transact(1, perRecord+1), commit1, roll, transact(2, 1), commit1, maintain,
	}},
	{"definitions", []func(*trial){define, publish(1), commit1, define, define, define, define, define}},
	{"defined, not yet synced", []func(*trial){enterDefined, commit1, enterDefined, restart, enterDefined, enterDefined, commit1}},
	{"defined and deleted", []func(*trial){
		enterDefined, commit1, deleteDefined, enterDefined, deleteDefined, define, enterDefined, commit1, deleteDefined, commit1, define, restart, enterDefined, deleteDefined,
	}},
	{"stop and start", []func(*trial){publish(4), commit1, restart, ack(1), amend, commit1, restart, restart, publish(1), roll, commit1}},
}

// aftermath is what a crash leaves of what was not synced.
type aftermath struct {
	name string
	of   func(*crashDisk) *crashDisk
}

var aftermaths = []aftermath{
	{"nothing unsynced is left", func(d *crashDisk) *crashDisk { return d.left(none, nil) }},
	{"names, but no data", func(d *crashDisk) *crashDisk { return d.left(all, nil) }},
	{"everything is left", func(d *crashDisk) *crashDisk { return d.left(all, whole) }},
	{"the last write is torn", func(d *crashDisk) *crashDisk { return d.left(all, torn) }},
	{"later writes without earlier ones", func(d *crashDisk) *crashDisk { return d.left(all, laterHalf) }},
}

// whole, torn and laterHalf choose which bytes of unsynced writes survive a crash; last is
// set for the file that was written to last.
func whole(writes []write, last bool) []write { return writes }

func torn(writes []write, last bool) []write {
	if !last || len(writes) == 0 {
		return writes
	}
	end := writes[len(writes)-1]
	return append(slices.Clone(writes[:len(writes)-1]), write{end.at, end.b[:len(end.b)/2]})
}

// laterHalf is what remains if the disk began with the end.
func laterHalf(writes []write, _ bool) (kept []write) {
	var sectors []write
	for _, w := range writes {
		for from := 0; from < len(w.b); {
			to := min(len(w.b), from+sector-(w.at+from)%sector)
			sectors = append(sectors, write{w.at + from, w.b[from:to]})
			from = to
		}
	}
	return sectors[(len(sectors)+1)/2:]
}

func none(int) int  { return 0 }
func all(n int) int { return n }

// left returns the disk after a crash, with a number of changes of names, and the writes
// that data lets through.
func (d *crashDisk) left(names func(changes int) int, data func(writes []write, last bool) []write) *crashDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := map[string]*inode{}
	for name, n := range d.durable {
		kept[name] = n
	}
	for _, change := range d.changes[:names(len(d.changes))] {
		change(kept)
	}
	next := newCrashDisk()
	for name, n := range kept {
		image := slices.Clone(n.synced)
		if grown := len(n.data) - len(image); grown > 0 && data != nil {
			image = append(image, make([]byte, grown)...)
		}
		if data != nil {
			for _, w := range data(n.pending, n == d.last) {
				copy(image[w.at:], w.b)
			}
		}
		n := &inode{data: image, synced: slices.Clone(image)}
		next.names[name], next.durable[name] = n, n
	}
	return next
}

// trial is a script in progress.
type trial struct {
	*world
	t    *testing.T
	mode SyncMode
	disk *crashDisk
	s    *Store

	queued  []place // in order
	defined int     // the last definitions that were saved: see definitionsAt
	trying  int     // the last definitions that may have been saved
	entered int     // messages in queues that were defined for them
	stopped bool    // it was closed cleanly, or was being closed
	closed  bool    // nothing was done since it was closed
	seen    []Delivered
}

func newTrial(t *testing.T, mode SyncMode, disk *crashDisk) *trial {
	return &trial{world: newWorld(t, 1), t: t, mode: mode, disk: disk}
}

// still makes the committer act only when somebody waits.
func still(mode SyncMode) tuning {
	t := tiny(mode)
	t.linger, t.announce, t.burst = time.Hour, time.Hour, 1<<30
	t.backlog = 1 << 17 // nobody writes while a script publishes
	if t.lazy > 0 {
		t.lazy = time.Hour
	}
	t.slack = 0
	return t
}

// open opens the store and checks what it finds. It returns false if the disk crashed.
func (r *trial) open() bool {
	r.pos = map[place]Pos{}
	s, found, err := openOn(r.disk, still(r.mode), &Options{Relocate: r.relocate})
	if err != nil {
		require.ErrorIs(r.t, err, errCrashed, "%v", err)
		r.closed = false // it may have removed the record of the clean stop
		return false
	}
	s.maintainer.close()
	s.journal.spare.refill(math.MaxInt)
	r.s = s
	r.check(found)
	return true
}

// check compares what was found with what was done.
func (r *trial) check(found *Recovery) {
	r.recovered(r.s, found)
	r.queued = r.queued[:0]
	for _, q := range found.Queues {
		for _, e := range q.Entries {
			r.queued = append(r.queued, place{q.Queue, e.Seq})
			if found.Clean {
				require.Equal(r.t, r.wasSeen(e.Seq), q.WasDelivered(e.Seq))
			} else {
				require.True(r.t, q.WasDelivered(e.Seq))
			}
		}
	}
	require.False(r.t, found.Clean && !r.stopped, "it was not stopped")
	require.False(r.t, !found.Clean && r.closed, "it was stopped")
	r.stopped, r.closed = false, false
	if !r.disk.crashed {
		require.NotContains(r.t, r.disk.durable, cleanStopName, "a crash would be taken for a stop")
	}
	r.checkDefinitions(found)
}

// checkDefinitions: everything that was synced is found, of the rest everything up to some
// time, and the definition of every queue that contains a message.
func (r *trial) checkDefinitions(found *Recovery) {
	saved := map[string]string{}
	for _, d := range found.Definitions {
		saved[d.Key] = string(d.Value)
	}
	for _, q := range found.Queues {
		if q.Queue >= firstDefined {
			require.True(r.t, saved[queueKey(q.Queue)] != "" || saved[goneKey(q.Queue)] != "", "nobody knows what became of queue %d", q.Queue)
		}
	}
	maps.DeleteFunc(saved, func(key, _ string) bool { return strings.HasPrefix(key, "queue") || strings.HasPrefix(key, "gone") })
	n := 0
	fmt.Sscanf(saved["count"], "%d", &n)
	require.True(r.t, r.defined <= n && n <= r.trying, "definitions %d, not %d or %d", n, r.defined, r.trying)
	require.Equal(r.t, definitionsAt(n), saved)
	r.defined, r.trying = n, n
}

// definitionsAt returns what is defined after n steps: the number of the step, and what the
// last three steps but one have added. The file is soon rewritten.
func definitionsAt(n int) map[string]string {
	saved := map[string]string{}
	if n > 0 {
		saved["count"] = fmt.Sprint(n)
	}
	for i := max(1, n-3); i <= n; i++ {
		saved[fmt.Sprint("step ", i)] = strings.Repeat(string(rune('a'+i%26)), tinyRoom/3)
	}
	return saved
}

func (r *trial) wasSeen(seq uint64) bool {
	return slices.ContainsFunc(r.seen, func(d Delivered) bool { return seq-d.First < d.Count })
}

// play runs the script until the disk crashes, and closes the store.
func (r *trial) play(steps []func(*trial)) {
	if !r.open() {
		return
	}
	for _, step := range steps {
		if r.disk.crashed || r.s == nil {
			break
		}
		step(r)
	}
	r.end()
}

// end closes the store like a process that dies.
func (r *trial) end() {
	if r.s != nil {
		_ = r.s.Close()
		r.s = nil
	}
}

func publish(n int) func(*trial) {
	return func(r *trial) {
		for range n {
			r.put(1, message(r.ids+1))
		}
	}
}

// put enters a message under the next number of a queue.
func (r *trial) put(queue uint64, m Message) {
	p, err := r.s.Put(m, true, 1)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids++
	e := r.enter(r.s, queue, p, true)
	at := place{queue, e.Seq}
	r.facts = append(r.facts, fact{enter: map[place]queuedMessage{at: {r.ids, Terms{ExpiresAt: e.ExpiresAt}}}})
	r.queued = append(r.queued, at)
	r.s.Enqueued([]Enqueue{e})
}

// first takes the message that was queued first.
func (r *trial) first() (place, bool) {
	if len(r.queued) == 0 {
		return place{}, false
	}
	at := r.queued[0]
	r.queued = r.queued[1:]
	return at, true
}

func ack(n int) func(*trial) {
	return func(r *trial) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for range n {
			if at, ok := r.first(); ok {
				settle := r.leave(at)
				r.facts = append(r.facts, fact{leave: []place{at}})
				r.s.Settled([]Settle{settle})
			}
		}
	}
}

// move dead-letters n messages into queue 2.
func move(n int) func(*trial) {
	return func(r *trial) {
		for range n {
			at, ok := r.first()
			if !ok {
				return
			}
			p, err := r.s.PutMoved(message(r.ids+1), true, 1)
			if err != nil {
				return
			}
			r.mu.Lock()
			r.ids++
			src, e := r.leave(at), r.enter(r.s, 2, p, true)
			r.facts = append(r.facts, fact{leave: []place{at}, enter: map[place]queuedMessage{{2, e.Seq}: {r.ids, Terms{ExpiresAt: e.ExpiresAt}}}})
			r.s.Moved(src, []Enqueue{e})
			r.mu.Unlock()
		}
	}
}

// transact enters n messages, into one queue after the other, and takes m out, in one
// transaction.
func transact(n, m int) func(*trial) {
	return func(r *trial) {
		var positions []Pos
		for i := range n {
			r.s.journal.spare.refill(math.MaxInt)
			p, err := r.s.Put(text(r.ids+1+i, 0), true, 1)
			if err != nil {
				return
			}
			positions = append(positions, p)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		f := fact{enter: map[place]queuedMessage{}}
		var settles []Settle
		for range m {
			if at, ok := r.first(); ok {
				settles = append(settles, r.leave(at))
				f.leave = append(f.leave, at)
			}
		}
		var entries []Enqueue
		for i, p := range positions {
			r.ids++
			e := r.enter(r.s, uint64(1+i%2), p, true)
			entries = append(entries, e)
			f.enter[place{e.Queue, e.Seq}] = queuedMessage{0, Terms{ExpiresAt: e.ExpiresAt}}
			r.queued = append(r.queued, place{e.Queue, e.Seq})
		}
		r.facts = append(r.facts, f)
		r.s.Transacted(entries, settles)
	}
}

// amend gives every queued message other terms.
func amend(r *trial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, at := range r.queued {
		terms := r.terms[at]
		terms.ExpiresAt += deadline.Instant(1000 + i)
		terms.Deliveries++
		terms.Flags++
		terms.WaitsUntil = deadline.Instant(i % 3)
		r.terms[at] = terms
		r.facts = append(r.facts, fact{amend: map[place]Terms{at: terms}})
		r.s.Amended([]Amend{{Queue: at.queue, Seq: at.seq, Pos: r.pos[at], Durable: true, Terms: terms}})
	}
}

func commit1(r *trial) { r.commit(r.s, true) }

// synced waits for the disk, whatever the mode.
func synced(r *trial) { _ = r.s.journal.sync() }

// roll ends the segment, with settled messages in it.
func roll(r *trial) {
	until := r.s.journal.next + 1
	for r.s.journal.next < until && r.s.Err() == nil {
		if r.s.journal.spare.refill(math.MaxInt); r.disk.crashed {
			return
		}
		p, err := r.s.Put(text(0, 500), true, 1)
		if err != nil {
			return
		}
		r.s.Release(p)
	}
	commit1(r)
}

func maintain(r *trial) { r.s.maintainer.round() }

func define(r *trial) {
	r.trying = r.defined + 1
	var changes []Definition
	for key, value := range definitionsAt(r.trying) {
		changes = append(changes, Definition{key, []byte(value)})
	}
	for key := range definitionsAt(r.defined) {
		if definitionsAt(r.trying)[key] == "" {
			changes = append(changes, Definition{Key: key})
		}
	}
	r.s.Define(changes...)
	if r.s.SyncDefinitions() == nil {
		r.defined = r.trying
	}
}

// firstDefined is the first of the queues that are defined when a message enters them.
const firstDefined = 100

func queueKey(queue uint64) string { return fmt.Sprint("queue ", queue) }

// enterDefined defines a queue and puts a message into it, without syncing either.
func enterDefined(r *trial) {
	r.entered++
	queue := firstDefined + uint64(r.entered)
	r.s.Define(Definition{queueKey(queue), []byte("there")})
	r.put(queue, message(r.ids+1))
}

func goneKey(queue uint64) string { return fmt.Sprint("gone ", queue) }

// deleteDefined deletes the last of those queues as a broker does: its definition is
// replaced by a note that it is gone, until the disk has the settlement of its message.
func deleteDefined(r *trial) {
	queue := firstDefined + uint64(r.entered)
	r.mu.Lock()
	for i, at := range r.queued {
		if at.queue == queue {
			r.queued = slices.Delete(r.queued, i, i+1)
			settle := r.leave(at)
			r.facts = append(r.facts, fact{leave: []place{at}})
			r.s.Settled([]Settle{settle})
			break
		}
	}
	r.mu.Unlock()
	r.s.Define(Definition{Key: queueKey(queue)}, Definition{goneKey(queue), []byte("true")})
	s, done := r.s, make(chan struct{})
	s.Synced(func(err error) {
		if err == nil {
			s.Undefine(Definition{Key: goneKey(queue)})
		}
		close(done)
	})
	if r.entered%2 == 0 {
		<-done
	}
	_ = s.SyncDefinitions()
	<-done
}

// restart stops cleanly, with all but the last message delivered, and starts again.
func restart(r *trial) {
	r.seen = nil
	if n := len(r.queued); n > 0 {
		r.seen = []Delivered{{Queue: 1, First: r.queued[0].seq, Count: r.queued[n-1].seq - r.queued[0].seq}}
	}
	r.stopped = true
	upTo := len(r.facts)
	if err := r.s.CloseClean(r.seen); err == nil {
		r.closed, r.confirmed = true, upTo
	}
	r.s = nil
	if !r.disk.crashed {
		r.open()
	}
}

// TestCrashAtEveryOperation runs each script once to count the operations that change the
// disk, and then once for each of them, crashing there. What is left is recovered and used.
// If CRASH_POINTS is "all", it also crashes at each operation of the recovery.
// If it is "some", only every eighth operation is tried.
func TestCrashAtEveryOperation(t *testing.T) {
	points := os.Getenv("CRASH_POINTS")
	step := 1
	if points == "some" {
		step = 8
	}
	total := 0
	for _, sc := range scripts {
		for _, mode := range []SyncMode{SyncGroup, SyncInterval, SyncNever} {
			t.Run(fmt.Sprint(sc.name, "/", [...]string{"group", "interval", "never"}[mode]), func(t *testing.T) {
				counted := newTrial(t, mode, newCrashDisk())
				counted.play(sc.steps)
				require.False(t, counted.disk.crashed)
				for at := 1; at <= counted.disk.ops; at += step {
					for _, after := range aftermaths {
						total += crashAt(t, sc, mode, at, after, points == "all")
					}
				}
			})
		}
	}
	t.Logf("%d crashes", total)
}

// crashAt crashes a script at one operation and recovers. It returns the number of crashes.
func crashAt(t *testing.T, sc script, mode SyncMode, at int, after aftermath, nested bool) (crashes int) {
	failed, what := true, new(string)
	defer func() {
		if failed {
			t.Logf("crash at operation %d; %s; %s", at, after.name, *what)
		}
	}()
	r := newTrial(t, mode, newCrashDisk())
	r.disk.crashAt = at
	r.play(sc.steps)
	image := after.of(r.disk)
	if after.name != "everything is left" && mode != SyncGroup && !r.closed {
		r.confirmed = 0
	}
	for again := 1; nested; again++ {
		second := r.fork(image.left(all, whole))
		second.disk.crashAt = again
		second.play(nil)
		if !second.disk.crashed {
			break
		}
		crashes++
		for _, then := range aftermaths {
			third := r.fork(then.of(second.disk))
			third.closed = false // the first start may have removed the record of the clean stop
			*what = fmt.Sprintf("again at operation %d; %s", again, then.name)
			third.goOn()
		}
	}
	r.disk = image
	r.goOn()
	failed = t.Failed()
	return crashes + 1
}

// fork returns a copy of the trial on another disk.
func (r *trial) fork(disk *crashDisk) *trial {
	w := newWorld(r.t, 1)
	w.base, w.facts, w.confirmed, w.ids = r.base, r.facts, r.confirmed, r.ids
	return &trial{
		world: w, t: r.t, mode: r.mode, disk: disk,
		defined: r.defined, trying: r.trying, entered: r.entered, stopped: r.stopped, closed: r.closed, seen: r.seen,
	}
}

// goOn recovers, uses the store, and recovers once more.
func (r *trial) goOn() {
	require.True(r.t, r.open())
	for _, step := range []func(*trial){publish(2), amend, ack(1), define, commit1} {
		step(r)
	}
	require.NoError(r.t, r.s.Err())
	r.end()
	require.True(r.t, r.open())
	r.end()
}

// sync returns once everything appended before is on disk.
func (j *journal) sync() error {
	j.mu.Lock()
	if err := j.usableLocked(); err != nil {
		j.mu.Unlock()
		return err
	}
	done := make(chan error, 1)
	j.forceLocked(func(err error) { done <- err })
	j.mu.Unlock()
	err := <-done
	resumed()
	return err
}
