package main

import (
	"context"
	"errors"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/queue"
	"curfew/monitor/dashboard"
)

// lookBytes is how much of the body of a message that stands for itself is shown.
const lookBytes = 2048

// Look implements dashboard.Broker.
func (s *shownBroker) Look(u dashboard.User, vhost, name string, seq uint64) (dashboard.Message, error) {
	q, err := s.readable(u, vhost, name)
	if err != nil {
		return dashboard.Message{}, err
	}
	x, ok := q.Look(queue.Seq(seq), lookBytes)
	if !ok {
		return dashboard.Message{}, dashboard.ErrGone
	}
	return s.shownMessage(&x), nil
}

// deadlineWords are the outcomes of a change; others mean that it came too late.
var deadlineWords = map[broker.ExpireOutcome]string{broker.Rescheduled: "rescheduled", broker.Expired: "expired", broker.Held: "held"}

// ChangeDeadline implements dashboard.Broker, with the permissions that the API wants.
func (s *shownBroker) ChangeDeadline(ctx context.Context, u dashboard.User, vhost, name string, seq uint64, c dashboard.DeadlineChange) (string, error) {
	q, err := s.readable(u, vhost, name)
	if err != nil {
		return "", err
	}
	if s.broker.RightsOf(u.Name, vhost).Queue(access.Write, name) != nil {
		return "", dashboard.ErrForbidden
	}
	if !s.broker.Expires() {
		return "", errors.New("no message expires here (CURFEW_TTL=off), so there is no deadline to change")
	}
	if c.To < 0 || c.To > s.State().Now+broker.MaxTTLMillis {
		return "", errors.New("a deadline lies ten years ahead at most")
	}
	x, ok := q.Look(queue.Seq(seq), 0)
	if !ok || s.shownMessage(&x).Deadline != c.Was {
		return "", dashboard.ErrGone
	}
	word, ok := deadlineWords[s.changeDeadline(q.Ref(&x), c)]
	if !ok {
		return "", dashboard.ErrGone
	}
	return word, s.safe(ctx)
}

func (s *shownBroker) changeDeadline(ref broker.MessageRef, c dashboard.DeadlineChange) broker.ExpireOutcome {
	if c.Fire {
		return s.broker.FireNow(ref, c.Drop)
	}
	outcome, _ := s.broker.Reschedule(ref, s.broker.Instant(c.To))
	return outcome
}

// safe waits until what was done is as safe as the store makes it.
func (s *shownBroker) safe(ctx context.Context) error {
	done := make(chan error, 1)
	s.broker.Commit(func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
