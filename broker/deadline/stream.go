package deadline

import (
	"sync"
	"sync/atomic"
)

// Details says how much of an Expiry a subscriber needs. Each level includes the one
// before.
type Details uint8

const (
	// Basic is an Expiry as far as Arrived and ClockAhead.
	Basic Details = iota
	// WithMessage adds the message's id and where its dead letter went.
	WithMessage
	// WithTrace adds the trace context.
	WithTrace
)

// Stream tells its subscribers about every expiry of a broker, once, however it was noticed
// and whatever became of the message. It keeps nothing, so it cannot lose anything: a
// subscriber that cannot keep up has to count what it drops. The zero value has no
// subscribers. Safe for concurrent use.
type Stream struct {
	mu          sync.Mutex   // held while a subscriber is added
	telling     sync.RWMutex // held to read while subscribers are told
	subscribers atomic.Pointer[[]func([]Expiry)]
	deaths      atomic.Pointer[func([]Expiry)]
	details     atomic.Uint32
}

// Subscribe adds fn, which is called with every batch of expiries from now on. Subscribers
// that must not miss an expiry subscribe before the broker is made.
//
// fn is called from any goroutine, from several at once, and with none of the broker's
// locks held. The batch and all that it refers to are valid during the call only. fn must
// not block, and must not ask the broker to expire anything.
func (s *Stream) Subscribe(needs Details, fn func([]Expiry)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []func([]Expiry)
	if old := s.subscribers.Load(); old != nil {
		all = append(all, *old...)
	}
	all = append(all, fn)
	s.details.Store(max(s.details.Load(), uint32(needs)))
	s.subscribers.Store(&all)
}

// SubscribeDeaths sets fn, which is called with the dead letters of messages that did not
// expire, in the details of WithMessage. There is only one such subscriber. The rules of
// Subscribe apply to it, too.
func (s *Stream) SubscribeDeaths(fn func([]Expiry)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.details.Store(max(s.details.Load(), uint32(WithMessage)))
	s.deaths.Store(&fn)
}

// DeathsWatched reports whether there is such a subscriber.
func (s *Stream) DeathsWatched() bool { return s.deaths.Load() != nil }

// PublishDeaths calls that subscriber with the batch.
func (s *Stream) PublishDeaths(batch []Expiry) {
	if fn := s.deaths.Load(); fn != nil && len(batch) > 0 {
		(*fn)(batch)
	}
}

// Watched reports whether there is a subscriber. What is published without one is lost.
func (s *Stream) Watched() bool { return s.subscribers.Load() != nil }

// Needs is the most that any subscriber needs.
func (s *Stream) Needs() Details { return Details(s.details.Load()) }

// Publish calls every subscriber with the batch, in the order in which they subscribed.
func (s *Stream) Publish(batch []Expiry) {
	if all := s.subscribers.Load(); all != nil && len(batch) > 0 {
		s.telling.RLock()
		defer s.telling.RUnlock()
		for _, fn := range *all {
			fn(batch)
		}
	}
}

// Between calls look at a moment at which no subscriber knows of a message that another one does not. It must be quick, since whoever has
// something to publish waits for it.
func (s *Stream) Between(look func()) {
	s.telling.Lock()
	defer s.telling.Unlock()
	look()
}

// Hour is what expired in the last hour, by virtual host and queue. It leaves out the queues of which that is not known.
type Hour map[[2]string]Toll

// Toll counts messages that expired: of these, those that were meant to, by what their queue was for then, and those of the others that were dropped.
type Toll struct{ Expired, Meant, Dropped int64 }

// Add adds what is in another.
func (t *Toll) Add(o Toll) {
	t.Expired, t.Meant, t.Dropped = t.Expired+o.Expired, t.Meant+o.Meant, t.Dropped+o.Dropped
}
