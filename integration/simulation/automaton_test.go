package simulation

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"curfew/broker/deadline"
)

// place is where a message is.
//
//	absent ──publish──► waiting ──take──► taken ──ack──► done
//	                     │  ▲               │ ├──reject─► dead
//	                     │  └───requeue─────┘ └──requeue, due──► dead
//	                     ├──due: expired by anybody──► dead
//	                     └──purge──► done
type place uint8

const (
	absent place = iota
	waiting
	taking // unacked
	done   // acked or purged
	dead   // in the dead-letter queue
)

// automaton is the state of one message and its clock. The broker is linearizable, message
// by message, if the operations on each message can be put in an order that agrees with
// real time and that the automaton accepts.
type automaton struct {
	place    place
	now      int64 // µs
	deadline int64 // µs; 0: never
	returned bool  // it was requeued
}

func (a automaton) due() bool { return a.deadline != 0 && a.now >= a.deadline }

// operation is a call of a client, without the answer.
type operation struct {
	kind    kind
	message int   // -1: all of them
	micros  int64 // publish: time to live, <0 none; tick: by how much; expire: which deadline
}

// answer is what the call returned, as far as its kind has an answer.
type answer struct {
	outcome  deadline.Outcome // expire
	returned bool             // take: the redelivered flag
	micros   int64            // tick: the time after the tick
	found    bool             // dig: the message is in the dead-letter queue
}

type kind string

const (
	publishes kind = "publish"
	takes     kind = "take"
	finds     kind = "get-empty"
	acks      kind = "ack"
	rejects   kind = "reject"
	requeues  kind = "requeue"
	expires   kind = "expire"
	purges    kind = "purge"
	ticks     kind = "tick"
	digs      kind = "look into the dead-letter queue"
)

// next returns the states that an operation can lead to; none if its answer is impossible.
func (a automaton) next(op operation, out answer) (states []any) {
	for _, from := range a.expireUnseen() {
		if to, ok := from.step(op, out); ok {
			states = append(states, to)
		}
	}
	return states
}

// expireUnseen returns what may have become of the message before the call. Once it is due,
// a call for another message may have let it expire.
func (a automaton) expireUnseen() []automaton {
	if a.place == waiting && a.due() {
		gone := a
		gone.place = dead
		return []automaton{a, gone}
	}
	return []automaton{a}
}

func (a automaton) step(op operation, out answer) (automaton, bool) {
	switch op.kind {
	case publishes:
		return a.published(op.micros)
	case takes:
		ok := a.place == waiting && !a.due() && a.returned == out.returned
		return a.to(taking), ok
	case finds:
		return a, a.place != waiting || a.due()
	case acks:
		return a.to(done), a.place == taking
	case rejects:
		return a.to(dead), a.place == taking
	case requeues:
		return a.requeued(), a.place == taking
	case expires:
		return a.expired(op.micros, out.outcome)
	case purges:
		if a.place == waiting {
			return a.to(done), true
		}
		return a, true
	case ticks:
		a.now += op.micros
		return a, a.now == out.micros
	case digs:
		return a, out.found == (a.place == dead)
	}
	panic("unknown operation " + op.kind)
}

func (a automaton) to(p place) automaton {
	a.place = p
	return a
}

func (a automaton) published(ttl int64) (automaton, bool) {
	ok := a.place == absent
	if a = a.to(waiting); ttl >= 0 {
		a.deadline = a.now + ttl
	}
	return a, ok
}

func (a automaton) requeued() automaton {
	if a.due() {
		return a.to(dead)
	}
	a.returned = true
	return a.to(waiting)
}

func (a automaton) expired(at int64, o deadline.Outcome) (automaton, bool) {
	there := (a.place == waiting || a.place == taking) && a.deadline == at
	switch o {
	case deadline.Expired:
		return a.to(dead), there && a.due() && a.place == waiting
	case deadline.Held:
		return a, there && a.due() && a.place == taking
	case deadline.NotDue:
		return a, there && !a.due()
	default:
		return a, !there
	}
}

// perMessage checks a history one message at a time.
func perMessage(startAt int64) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: byMessage,
		Init:      func() []any { return []any{automaton{now: startAt}} },
		Step: func(state, in, out any) []any {
			return state.(automaton).next(in.(operation), out.(answer))
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
	return m.ToModel()
}

// byMessage gives every message its own operations, and those that concern all messages.
func byMessage(history []porcupine.Operation) [][]porcupine.Operation {
	most := -1
	for _, o := range history {
		most = max(most, o.Input.(operation).message)
	}
	parts := make([][]porcupine.Operation, most+1)
	for _, o := range history {
		for i := range parts {
			if m := o.Input.(operation).message; m == i || m < 0 {
				parts[i] = append(parts[i], o)
			}
		}
	}
	return parts
}
