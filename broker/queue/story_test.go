package queue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"curfew/broker/deadline"
)

// story runs a script against a queue. Messages go by name; time starts at 1000
// and moves only by advance. One line is one operation:
//
//	options [priorities=N] [max=N] [bytes=N] [limit=N] [overflow=drop|reject]
//	publish NAME... [p=N] [ttl=N] [bytes=N]
//	advance N
//	take NAME [redelivered] [failed=N]   or: take nothing
//	ack | reject | requeue | fail NAME   (fail: requeue, counted as failed)
//	expire NAME [deadline=N]
//	reschedule NAME [deadline=N] [in=N]  (without in: never)
//	track NAME [deadline=N]
//	trim | purge | drain | shrink
//	full N
//	holds NAME NAME* ...                 (in order of delivery; * is unacked)
//
// After "->" stands the answer, where it is not the usual one; after "=>" what
// left the queue and why. A line without "=>" must let nothing go.
type story struct {
	q     *Queue
	fx    Effects
	now   deadline.Instant
	seqs  map[string]Seq
	names map[Seq]string
}

func tell(t *testing.T, script string) {
	t.Helper()
	s := story{now: 1000, seqs: map[string]Seq{}, names: map[Seq]string{}}
	s.q = New(parseOptions(nil))
	for i, line := range strings.Split(script, "\n") {
		line, left, _ := strings.Cut(strings.TrimSpace(line), "=>")
		line, answer, _ := strings.Cut(line, "->")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		s.fx.Reset()
		got := s.do(words[0], words[1:])
		if err := s.q.Check(); err != nil {
			t.Fatalf("line %d: %s: %v", i, line, err)
		}
		if got != strings.TrimSpace(answer) {
			t.Fatalf("line %d: %s: answer %q, want %q", i, line, got, strings.TrimSpace(answer))
		}
		if gone := s.left(); gone != strings.TrimSpace(left) {
			t.Fatalf("line %d: %s: let go %q, want %q", i, line, gone, strings.TrimSpace(left))
		}
	}
}

func (s *story) do(op string, args []string) string {
	switch op {
	case "options":
		s.options(args)
	case "publish":
		s.publish(args)
	case "advance":
		s.now += deadline.Instant(number(args[0]))
	case "take":
		return s.take(strings.Join(args, " "))
	case "ack":
		return yes(s.q.Settle(s.seqs[args[0]], Acked, &s.fx))
	case "reject":
		return yes(s.q.Settle(s.seqs[args[0]], Rejected, &s.fx))
	case "requeue", "fail":
		return yes(s.q.Requeue(s.now, s.seqs[args[0]], op == "fail", &s.fx))
	case "expire":
		a := s.q.Expire(s.now, s.seqs[args[0]], s.deadline(args), &s.fx)
		if a.Outcome == deadline.NotDue {
			return fmt.Sprintf("not due until %d", a.At)
		}
		return a.Outcome.String()
	case "reschedule":
		o, was := s.q.Reschedule(s.now, s.seqs[args[0]], s.deadline(args), s.until(args), &s.fx)
		if was {
			return o.String() + " tracked"
		}
		return o.String()
	case "track":
		return yes(s.q.Track(s.seqs[args[0]], s.deadline(args)))
	case "trim":
		s.q.Trim(&s.fx)
	case "purge":
		return strconv.Itoa(purge(s.q, &s.fx))
	case "drain":
		rest := s.q.Clear()
		n := rest.Len()
		for rest.Sweep(&s.fx) {
		}
		return strconv.Itoa(n)
	case "shrink":
		s.q.Shrink()
	case "full":
		return fmt.Sprint(s.q.opts.Overflow != DropHead && s.q.Exceeds(1, number(args[0])))
	case "holds":
		return s.holds(strings.Join(args, " "))
	default:
		return "no such operation"
	}
	return ""
}

func (s *story) options(args []string) {
	o := parseOptions(args)
	if len(s.seqs) == 0 {
		s.q = New(o)
	} else {
		s.q.SetOptions(o)
	}
}

func parseOptions(args []string) Options {
	o := Options{
		Priorities:    uint8(value(args, "priorities", 0)),
		MaxLength:     value(args, "max", -1),
		MaxBytes:      value(args, "bytes", -1),
		DeliveryLimit: value(args, "limit", -1),
	}
	if slices.Contains(args, "overflow=reject") {
		o.Overflow = RejectPublish
	}
	return o
}

func (s *story) publish(args []string) {
	m := Message{Pos: uint64(len(s.seqs)), Bytes: uint32(value(args, "bytes", 1))}
	if ttl := value(args, "ttl", -1); ttl >= 0 {
		m.ExpiresAt = s.now + deadline.Instant(ttl)
		if ttl == 0 {
			m.Flags = Immediate
		}
	}
	for _, name := range args {
		if !strings.Contains(name, "=") {
			seq := s.q.Publish(m, uint8(value(args, "p", 0)))
			s.seqs[name], s.names[seq] = seq, name
		}
	}
}

// take answers what is wrong with the delivery.
func (s *story) take(want string) string {
	got := "nothing"
	if d, ok := s.q.Take(s.now, &s.fx); ok {
		got = s.names[d.Seq]
		if d.Redelivered {
			got += " redelivered"
		}
		if d.Deliveries > 0 {
			got += fmt.Sprintf(" failed=%d", d.Deliveries)
		}
	}
	if got == want {
		return ""
	}
	return got
}

func (s *story) holds(want string) string {
	var got []string
	s.q.Each(0, func(seq Seq, _ Message, state State) bool {
		got = append(got, s.names[seq]+map[State]string{Unacked: "*"}[state])
		return true
	})
	if all := strings.Join(got, " "); all != want {
		return all
	}
	return ""
}

func (s *story) deadline(args []string) deadline.Instant {
	var at deadline.Instant
	s.q.Each(s.seqs[args[0]], func(_ Seq, m Message, _ State) bool {
		at = m.ExpiresAt
		return false
	})
	return deadline.Instant(value(args, "deadline", int64(at)))
}

// until is so long from now, or never.
func (s *story) until(args []string) deadline.Instant {
	if in := value(args, "in", -1); in >= 0 {
		return s.now + deadline.Instant(in)
	}
	return 0
}

func (s *story) left() string {
	var left []string
	for _, x := range s.fx.Settled {
		text := s.names[x.Seq] + " " + x.Reason.String()
		if x.Tracked {
			text += " tracked"
		}
		left = append(left, text)
	}
	return strings.Join(left, ", ")
}

func yes(ok bool) string {
	if ok {
		return ""
	}
	return "no"
}

func value(args []string, key string, otherwise int64) int64 {
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, key+"="); ok {
			return number(v)
		}
	}
	return otherwise
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}
