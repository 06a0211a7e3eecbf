package convert

import (
	"slices"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/amqp10"
)

// Outcome is what becomes of a publish whose client wants to know.
type Outcome struct {
	ID    uint32 // of the delivery
	Place int    // in the publisher's batch; negative: it is not there
	State amqp10.State
}

// maxAdded is how large the annotations of an outcome may be, in octets.
const maxAdded = 4 << 10

// Added are the annotations that a consumer adds to a message, as headers: those whose names begin with x-, and that are neither the
// broker's own nor maps or lists, which a message has no room for. nil: none. The error is that there are too many.
func Added(annotations any) (amqp.Table, error) {
	m, _ := annotations.(amqp10.Map)
	if len(m) == 0 {
		return nil, nil
	}
	if len(amqp10.Append(nil, m)) > maxAdded {
		return nil, amqp.NewException(amqp.PreconditionFailed, 0, 0, "the annotations of the outcome take more than %d octets", maxAdded)
	}
	var p amqp.Properties
	for _, e := range m {
		key, _ := fromValue(e.Key, 0)
		name, _ := key.(string)
		if !strings.HasPrefix(name, "x-") || len(name) > 255 || slices.ContainsFunc(ownHeaders, func(own string) bool { return strings.HasPrefix(name, own) }) {
			continue
		}
		switch v, _ := fromValue(e.Value, 0); v := v.(type) {
		case nil, amqp.Table, []any:
		case []byte:
			setHeader(&p, name, slices.Clone(v)) // it aliases what was read
		default:
			setHeader(&p, name, v)
		}
	}
	return p.Headers, nil
}

// Annotate is the raw property list of a message, from its own, with headers that its consumer adds. nil: they are too large
// with its others.
func Annotate(properties []byte, added amqp.Table) []byte {
	p, err := amqp.ParseProperties(properties, amqp.Limits{})
	if err != nil {
		return nil
	}
	for key, v := range added {
		setHeader(&p, key, v)
	}
	if table := amqp.AppendTable(nil, p.Headers); len(table) > maxHead || amqp.ValidateTable(table, amqp.Limits{}) != nil {
		return nil
	}
	return p.Append(nil)
}

// ownHeaders begin the names of headers that the broker writes or obeys.
var ownHeaders = []string{
	"x-death", deathsAnnotation, "x-first-death", "x-last-death", "x-delay", "x-delivery", "x-expir", "x-scheduled", "x-ttl", "x-lock", "x-remaining", "x-exchange", "x-routing-key", keptPrefix,
}

// Dispositions tells a client the outcomes of a batch in as few frames as possible. refused are the
// places of what a full queue refused, ascending.
func Dispositions(batch []Outcome, refused []int) (all []amqp10.Performative) {
	for _, o := range batch {
		if _, is := slices.BinarySearch(refused, o.Place); is { // of those refused, some that were sent settled are not in the batch
			o.State = amqp10.State{Kind: amqp10.StateRejected, Error: &amqp10.Error{Condition: "amqp:resource-limit-exceeded", Description: "a queue is full"}}
		}
		if len(all) > 0 && o.State.Error == nil {
			last := all[len(all)-1].(*amqp10.Disposition)
			if last.Last.Value+1 == o.ID && last.State.Kind == o.State.Kind && last.State.Error == nil {
				last.Last.Value++
				continue
			}
		}
		all = append(all, &amqp10.Disposition{Role: amqp10.RoleReceiver, First: o.ID, Last: amqp10.Uint(o.ID), Settled: true, State: &o.State})
	}
	return all
}
