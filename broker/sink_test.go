package broker_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
)

// sink is a consumer that keeps what it is given, up to credit unacked ones.
type sink struct {
	t      testing.TB
	c      *broker.Consumer
	mu     sync.Mutex
	credit int // <0: no limit
	got    []message
	gone   bool
}

// newSink starts a consumer without a limit.
func newSink(t testing.TB, q *broker.Queue, noAck bool) *sink {
	return newLimitedSink(t, q, noAck, -1)
}

func newLimitedSink(t testing.TB, q *broker.Queue, noAck bool, credit int) *sink {
	s := &sink{t: t, credit: credit}
	s.c = &broker.Consumer{Tag: "c", NoAck: noAck, Sink: s}
	require.NoError(t, q.Messages.Consume(s.c))
	s.c.Wake()
	return s
}

func (s *sink) Pull(_ *broker.Consumer, src *broker.Source, most int) (taken int, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var d broker.Delivery
	for ; taken < most; taken++ {
		if s.credit == 0 {
			return taken, false
		}
		if !src.Next(&d) {
			break
		}
		s.credit--
		s.got = append(s.got, copied(s.t, &d))
	}
	return taken, true
}

func (s *sink) Cancelled(*broker.Consumer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
}

// take returns what came since the last call.
func (s *sink) take() []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	return got
}

func (s *sink) bodies() (bodies []string) {
	for _, m := range s.take() {
		bodies = append(bodies, m.body)
	}
	return bodies
}
