package integration

import (
	"fmt"
	"strings"
	"testing/synctest"
	"time"
)

func (s *story) expect(args []string, options map[string]string) error {
	synctest.Wait()
	switch strings.Join(args[:min(2, len(args))], " ") {
	case "no dead-letter":
		return s.expectNone("dead letter", s.dead)
	case "no delivery":
		select {
		case d := <-s.deliveries:
			return fmt.Errorf("%s was delivered", d.Body)
		default:
			return nil
		}
	case "no queue":
		return s.expectNoQueue(args[2])
	}
	switch args[0] {
	case "dead-letter":
		return s.expectDead(args[1], options)
	case "parked":
		return s.expectParked(args[1], options)
	case "delivered":
		return s.expectDelivered(args[1])
	case "deaths":
		return same("deaths", summary(s.held[args[1]]), strings.Join(args[2:], " "))
	case "ready":
		q, err := s.ch.QueueDeclarePassive(args[1], false, false, false, false, nil)
		if err != nil {
			return err
		}
		return same("ready", fmt.Sprint(q.Messages), args[2])
	}
	return fmt.Errorf("unknown expectation")
}

func (s *story) expectDead(id string, options map[string]string) error {
	select {
	case d := <-s.dead:
		if err := same("dead letter", string(d.Body), id); err != nil {
			return err
		}
		return s.matches(d, options)
	default:
		return fmt.Errorf("no dead letter has arrived")
	}
}

func (s *story) expectParked(id string, options map[string]string) error {
	d, ok, err := s.ch.Get(undelivered, true)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%s is empty", undelivered)
	}
	delete(options, "late<")
	if err := same("parked message", string(d.Body), id); err != nil {
		return err
	}
	return s.matches(dated{d, s.now()}, options)
}

// matches holds a dead letter to its deadline and to the line's options.
func (s *story) matches(d dated, options map[string]string) error {
	id := string(d.Body)
	newest := deaths(d.Delivery)[0]
	due, limited := s.deadline[id]
	if newest["reason"] == "expired" && (!limited || d.at.Before(due)) {
		return fmt.Errorf("%s expired before its deadline %v, at %v", id, due, d.at)
	}
	if back, was := s.returned[id]; was && back.After(due) {
		due = back // it was held over its deadline
	}
	for option, want := range options {
		switch option {
		case "late<":
			if limit, err := time.ParseDuration(want); err != nil || d.at.Sub(due) > limit {
				return fmt.Errorf("%s came %v after its deadline %v", id, d.at.Sub(due), err)
			}
		case "reason", "original-expiration":
			if err := same(option, fmt.Sprint(newest[option]), want); err != nil {
				return err
			}
		case "from":
			if err := same(option, fmt.Sprint(newest["queue"]), want); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unknown option %s", option)
		}
	}
	return nil
}

func (s *story) expectDelivered(id string) error {
	select {
	case d := <-s.deliveries:
		s.held[string(d.Body)] = d
		return same("delivery", string(d.Body), id)
	default:
		return fmt.Errorf("nothing was delivered")
	}
}

func (s *story) expectNone(what string, arrivals <-chan dated) error {
	synctest.Wait()
	select {
	case d := <-arrivals:
		return fmt.Errorf("%s %s arrived at %v", what, d.Body, d.at)
	default:
		return nil
	}
}

func (s *story) expectNoQueue(name string) error {
	// A channel of its own: the broker closes it when the queue is not there.
	ch, err := s.conn.Channel()
	if err != nil {
		return err
	}
	if q, err := ch.QueueDeclarePassive(name, false, false, false, false, nil); err == nil {
		return fmt.Errorf("%s is there with %d messages", name, q.Messages)
	}
	return nil
}

func same(what, got, want string) error {
	if got != want {
		return fmt.Errorf("%s is %q, not %q", what, got, want)
	}
	return nil
}
