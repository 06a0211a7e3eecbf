package delivery

import (
	"sync"

	"curfew/broker/deadline"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Transition is the scratch memory of one call into the broker: what the queues that it locks hand
// over, and what is left to do after unlock. Transitions are pooled; none outlives its call.
type Transition struct {
	Env        *Env
	Now        deadline.Instant // rounded down: deadlines up to it have passed. Read under the lock
	stamp      deadline.Instant // rounded up: times to live count from it. Likewise
	fx         queue.Effects
	Events     []deadline.Event
	Entered    []store.Enqueue
	Settled    []store.Settle
	amended    []store.Amend
	instant    []queue.Seq // TTL 0: published, and expired unless a consumer takes them now
	Refused    []int       // publishes refused by overflow, by their number
	Numbered   []Numbered  // delayed messages that have entered, in order; with AllOrNone, messages in queues, too
	touched    int         // messages that were worked on under the lock that is held
	passed     int         // consumers that could take none (dispatchLocked)
	dropping   bool        // what expires is not dead-lettered
	why        *Rejection  // of what is rejected; nil: nothing was said
	Hurried    bool        // all letters are left to the forwarder
	Whole      bool        // a transaction: Entered and Settled gather, to be journaled as one
	AllOrNone  bool        // queues refuse nothing: they were asked (Batch.Refuses)
	Paced      bool        // its publisher can be asked to wait (flow)
	behind     bool        // consumers fall behind (flow)
	crowded    []*Queue    // queues that its publisher has to wait for
	dying      *Lines      // in which what it has published may become letters; nil: in none
	Awaits     bool        // its publisher is a client, which waits for the monitor (awaitFeed)
	fed        int         // events for the monitor since then
	source     Source
	props      []byte // of the delivery being made
	headers    []byte // likewise, where the queue shows its receivers more (withHeadersLocked)
	text       []byte // likewise
	properties []byte // likewise

	Sources   []*Letters  // the lines in which the transition has put letters
	posted    int64       // letters posted under the lock that is held
	Transfers []*Transfer // indexed by Item.Move
	Expiries  expiries

	Safely []func() // called, by any goroutine, once what was done is as safe as the sync mode promises; they must not block
}

// Numbered is the number of a message that a publish has entered: among the delayed messages, or in a queue.
type Numbered struct {
	Publish int // its number within the batch
	Seq     queue.Seq
	Delayed bool
}

// TransitionKeep is the largest scratch memory, in elements, that stays in the pool: that of a
// transaction of a million messages does not.
const TransitionKeep = 1 << 14

var transitions = sync.Pool{New: func() any { return new(Transition) }}

// Begin takes a transition from the pool.
func (e *Env) Begin() *Transition {
	s := transitions.Get().(*Transition)
	s.Env = e
	return s
}

// ReadClock is called after a lock was taken, since that may have had to wait.
func (s *Transition) ReadClock() { s.Now, s.stamp = s.Env.Clock.Read() }

// Hurry is Begin for callers that others wait for, and that leave all letters to the forwarder.
func (e *Env) Hurry() *Transition {
	s := e.Begin()
	s.Hurried = true
	return s
}

// Done forwards the letters that the transition has put in line, reports expiries, and gives the
// transition back to the pool. No lock may be held.
func (s *Transition) Done() {
	if len(s.Sources) > 0 {
		s.forward()
	}
	if len(s.Expiries.Records)+len(s.Expiries.Deaths) > 0 {
		s.Report()
	}
	if calls := s.Safely; len(calls) > 0 {
		s.Safely = nil
		s.Env.Store.Commit(func(err error) {
			for i := 0; i < len(calls) && err == nil; i++ {
				calls[i]()
			}
		})
	}
	s.recycle()
}

// forward takes a first turn for the letters that were posted. It leaves to the forwarder all
// letters of a hurried transition, and those of any virtual host but one. A turn waits for
// nothing, since other letters wait for its end.
func (s *Transition) forward() {
	s.Awaits = false
	lines, own := s.Sources[0].Lines, s.Sources[:0]
	for _, l := range s.Sources {
		if l.Lines == lines && !s.Hurried {
			own = append(own, l)
		} else {
			l.Lines.Later(l)
		}
	}
	clear(s.Sources[len(own):])
	if s.Sources = own; len(own) > 0 {
		lines.First(s)
	}
}

func (s *Transition) recycle() {
	largest := max(cap(s.fx.Settled), cap(s.Events), cap(s.Entered), cap(s.Settled), cap(s.amended), cap(s.Sources), cap(s.Numbered), cap(s.Expiries.Records))
	if largest > TransitionKeep {
		return
	}
	s.Refused, s.Numbered = s.Refused[:0], s.Numbered[:0]
	s.Env, s.source, s.why, s.Hurried = nil, Source{}, nil, false
	clear(s.Transfers)
	s.Transfers = s.Transfers[:0]
	clear(s.crowded)
	s.crowded, s.dying, s.Paced, s.behind = s.crowded[:0], nil, false, false
	s.Awaits, s.fed = false, 0
	transitions.Put(s)
}

// notifyLocked adds an event for the monitor, if there is one.
func (s *Transition) notifyLocked(e deadline.Event) {
	if s.Env.Feed.On.Load() {
		s.Events = append(s.Events, e)
	}
}

// notifyLeftLocked adds an event for a tracked message that left its queue, unless it was the
// monitor that proposed its expiry.
func (s *Transition) notifyLeftLocked(q *messages, x *queue.Settled, path deadline.Path) {
	if x.Tracked && !path.Proposed() {
		s.notifyLocked(deadline.Event{Kind: deadline.Left, Ref: q.refOf(x.Seq, x.ExpiresAt)})
	}
}

// AddEnteredLocked notes that an item has entered: as part of its transfer, or by itself.
func (s *Transition) AddEnteredLocked(it *Item, entered store.Enqueue) {
	if it.Move >= 0 {
		t := s.Transfers[it.Move]
		t.Into = append(t.Into, entered)
	} else {
		s.Entered = append(s.Entered, entered)
	}
}

// FinishLocked hands over what was done under the lock of l's source: events go to the feed,
// records to the journal. It is called before the lock is released, so that the events and records
// of one message keep their order.
func (s *Transition) FinishLocked(l *Letters) {
	if s.posted > 0 {
		l.Lines.Waiting.Add(s.posted)
		s.Env.Waiting.Add(s.posted)
		s.posted = 0
	}
	s.Env.Feed.Push(s.Events)
	s.fed += len(s.Events)
	if !s.Whole {
		s.Env.Store.Enqueued(s.Entered)
	}
	s.Env.Store.Amended(s.amended)
	if !s.Whole {
		s.Env.Store.Settled(s.Settled)
		s.Entered, s.Settled = s.Entered[:0], s.Settled[:0]
	}
	s.Events, s.amended = s.Events[:0], s.amended[:0]
}

// awaitFeed is called with no lock held after messages have entered queues. A client that publishes deadlines faster than the
// monitor takes them waits, after some of them or, last, after all.
func (s *Transition) awaitFeed(last bool) {
	if s.Awaits && (s.fed >= queue.AtOnce || last && s.fed > 0) {
		if s.fed = 0; !s.Env.Feed.standsStill() {
			s.Env.Feed.await(feedAhead)
		}
	}
}

// Transfer is the move of a message from one queue into others, which happens as a whole.
type Transfer struct {
	Into    []store.Enqueue // what has entered so far
	Refused bool            // by a target that it then has to wait for
}
