package convert

import "curfew/broker/amqp10"

// Outcome is what becomes of a publish.
type Outcome struct {
	ID      uint32 // of the delivery
	Settled bool   // its client does not want to know
	Place   int    // in the publisher's batch; negative: it is not there
	State   amqp10.State
}

// Dispositions tells a client the outcomes of a batch in as few frames as possible. refused are the
// places of what a full queue refused, ascending. n is how many outcomes the client is told.
func Dispositions(batch []Outcome, refused []int) (all []amqp10.Performative, n uint64) {
	for _, o := range batch {
		if len(refused) > 0 && o.Place == refused[0] {
			refused = refused[1:]
			o.State = amqp10.State{Kind: amqp10.StateRejected, Error: &amqp10.Error{Condition: "amqp:resource-limit-exceeded", Description: "a queue is full"}}
		}
		if o.Settled {
			continue
		}
		n++
		if len(all) > 0 && o.State.Error == nil {
			last := all[len(all)-1].(*amqp10.Disposition)
			if last.Last.Value+1 == o.ID && last.State.Kind == o.State.Kind && last.State.Error == nil {
				last.Last.Value++
				continue
			}
		}
		all = append(all, &amqp10.Disposition{Role: amqp10.RoleReceiver, First: o.ID, Last: amqp10.Uint(o.ID), Settled: true, State: &o.State})
	}
	return all, n
}
