package broker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lettersHelp is how many letters may wait in a virtual host before whoever causes
	// another, as a publisher or a consumer, moves some of them first, or waits for it.
	lettersHelp = 1 << 16
	// heldFor is how long a letter waits that would take memory while there is little.
	heldFor = 100 * time.Millisecond
	// helpFor is how long whoever causes letters helps, or waits, while too many wait.
	helpFor = time.Second
	// drainFor is how long a broker that stops goes on moving letters. What is left then
	// is in its queue again in the next run.
	drainFor = 5 * time.Second
)

// forwarder moves the letters that nobody else does: one goroutine that takes turns,
// virtual host by virtual host, and within one queue by queue. So whatever one tenant's
// dead letters cause, another's wait for a turn of each virtual host at most. Whoever makes
// deadlines come (Expire, the alarms, the delay timer) leaves all letters to it; a
// publish, an acknowledgement and a get take a first turn themselves, so that their effects
// are seen at once and their costs are borne by who causes them.
type forwarder struct {
	b       *Broker
	waiting atomic.Int64 // letters in all lines
	wake    chan struct{}

	mu   sync.Mutex  // leaf; guards VHost.sources, Queue.inTurn and Queue.held too
	ring []*VHost    // with queues that have letters, in turns
	held []*Queue    // whose letters would take much memory
	hold *time.Timer // until they are tried again

	awaited atomic.Bool   // somebody waits for
	turned  chan struct{} // the end of a turn; changed with mu held
}

func (f *forwarder) init(b *Broker) {
	f.b, f.wake, f.hold = b, make(chan struct{}, 1), time.NewTimer(time.Hour)
	f.hold.Stop()
}

// add has turns taken of queues with letters.
func (f *forwarder) add(queues ...*Queue) {
	f.mu.Lock()
	for _, q := range queues {
		f.enlist(q)
	}
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *forwarder) enlist(q *Queue) {
	if q.inTurn || q.held {
		return
	}
	q.inTurn = true
	if len(q.vh.sources) == 0 {
		f.ring = append(f.ring, q.vh)
	}
	q.vh.sources = append(q.vh.sources, q)
}

// next is the queue whose turn it is; nil if no letters wait.
func (f *forwarder) next() *Queue {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ring) == 0 {
		return nil
	}
	vh := f.ring[0]
	f.ring = f.ring[1:]
	q := vh.shift()
	if len(vh.sources) > 0 {
		f.ring = append(f.ring, vh)
	}
	return q
}

// nextOf is next in one virtual host.
func (f *forwarder) nextOf(vh *VHost) *Queue {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(vh.sources) == 0 {
		return nil
	}
	q := vh.shift()
	if len(vh.sources) == 0 {
		f.ring = slices.DeleteFunc(f.ring, func(x *VHost) bool { return x == vh })
	}
	return q
}

// shift takes the first of the queues with letters; called with the forwarder's mu held.
func (vh *VHost) shift() *Queue {
	q := vh.sources[0]
	vh.sources[0] = nil
	if vh.sources = vh.sources[1:]; len(vh.sources) == 0 {
		vh.sources = nil
	}
	q.inTurn = false
	return q
}

// run takes turns until the broker ends.
func (f *forwarder) run() {
	s := f.b.step()
	defer f.hold.Stop()
	for {
		q := f.next()
		if q == nil {
			s.turns.rest() // what it remembers would keep deleted queues
			select {
			case <-f.wake:
			case <-f.hold.C:
				f.release()
			case <-f.b.quit:
				return
			}
			continue
		}
		f.take(s, q)
		select {
		case <-f.hold.C:
			f.release()
		case <-f.b.quit:
			return
		default:
		}
	}
}

// first takes a first turn for a step that has posted letters, unless it is in a hurry, and
// hands on what remains. It goes on where too many wait in the virtual host.
func (f *forwarder) first(s *step) {
	if s.hurried {
		f.handOn(s)
		return
	}
	vh := s.sources[0].vh
	var rest []*Queue
	b := budget{turnLetters, turnEntries}
	for i := 0; i < len(s.sources) && b.letters > 0 && b.entries > 0; i++ { // a turn may add to them
		q := s.sources[i]
		if q == nil {
			continue
		}
		for j := i; j < len(s.sources); j++ {
			if s.sources[j] == q { // one turn is for all that it has posted before
				s.sources[j] = nil
			}
		}
		if more, held := s.turn(q, &b); more || held {
			rest = append(rest, q)
		}
	}
	s.sources = append(slices.DeleteFunc(s.sources, func(q *Queue) bool { return q == nil }), rest...)
	f.handOn(s)
	if vh.letters.Load() > lettersHelp {
		f.help(s, vh)
	}
}

// help moves letters of a virtual host until fewer wait, or waits while others do. It gives up
// after a while, and soon where they do not become fewer: an acknowledgement must come
// through, since it makes room.
func (f *forwarder) help(s *step, vh *VHost) {
	giveUp, until := time.NewTimer(heldFor), time.Now().Add(helpFor)
	defer giveUp.Stop()
	for last := vh.letters.Load(); time.Now().Before(until); {
		turned := f.await()
		switch n := vh.letters.Load(); {
		case n <= lettersHelp:
			return
		case n < last:
			giveUp.Reset(heldFor)
			last = n
		}
		if q := f.nextOf(vh); q != nil {
			f.take(s, q)
			continue
		}
		select {
		case <-turned:
		case <-giveUp.C:
			return
		}
	}
}

// take takes one turn of q and has the letters that remain, and those that it caused,
// take theirs later: after a while if they wait for memory.
func (f *forwarder) take(s *step, q *Queue) {
	more, held := s.turn(q, &budget{turnLetters, turnEntries})
	if held {
		f.keep(q)
	} else if more {
		f.add(q)
	}
	f.handOn(s)
}

// handOn leaves the letters that a step has posted to the forwarder.
func (f *forwarder) handOn(s *step) {
	if len(s.sources) == 0 {
		return
	}
	f.add(s.sources...)
	clear(s.sources)
	s.sources = s.sources[:0]
}

// keep has a queue's next turn wait for memory.
func (f *forwarder) keep(q *Queue) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.held {
		return
	}
	q.held = true
	if f.held = append(f.held, q); len(f.held) == 1 {
		f.hold.Reset(heldFor)
	}
}

// release tries those again that waited for memory.
func (f *forwarder) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.held {
		q.held = false
		f.enlist(q)
	}
	f.held = nil
}

// passed counts letters of a virtual host that are where they go.
func (f *forwarder) passed(vh *VHost, n int) {
	vh.letters.Add(-int64(n))
	f.waiting.Add(-int64(n))
	if !f.awaited.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.awaited.CompareAndSwap(true, false) {
		close(f.turned)
	}
}

// await returns a channel that is closed when the next turn has ended.
func (f *forwarder) await() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.awaited.Load() {
		f.turned = make(chan struct{})
		f.awaited.Store(true)
	}
	return f.turned
}

// Forwarded waits until no message that has left a queue is on its way to another. Its
// error is that of ctx.
func (b *Broker) Forwarded(ctx context.Context) error {
	f := &b.forwarder
	for {
		turned := f.await()
		if f.waiting.Load() == 0 {
			return nil
		}
		select {
		case <-turned:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
