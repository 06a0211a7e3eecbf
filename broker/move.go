package broker

import (
	"errors"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/message"
	"curfew/broker/internal/topology"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Move publishes m and takes the ready message that ref names out of its queue, as one step:
// after a crash both have happened or neither has, even before a Commit that follows has
// called back. m is the message in its new form, usually with other headers; died means that
// the death headers in it are the broker's own, so that the next death adds to them. The
// message stays as it was unless the outcome is Moved. A property user-id is not checked: it
// was checked when the message arrived. Errors are those of Add; then nothing was done.
// Messages that wait for Flush are not affected.
func (p *Publisher) Move(ref deadline.Ref, m *Publication, died bool) (MoveOutcome, error) {
	q := p.vh.b.registry.ByID(ref.Queue)
	if q == nil {
		return MoveGone, nil
	}
	it := delivery.Item{TTLMillis: -1}
	to, err := p.findTargets(m, &it)
	if err != nil {
		return 0, err
	}
	if died {
		it.Message.Flags |= queue.Died
	}
	if outcome := to.admit(q, it.Message.Bytes); outcome != Moved {
		return outcome, nil
	}
	return p.move(q, ref, m, &it, to)
}

// Arrival is a queue that a message would enter. Expires is the deadline that it would have there; 0: none.
type Arrival struct {
	Queue   *Queue
	Expires deadline.Instant
}

// CanMove returns the outcome that Move would have, and moves nothing. It appends to out where the message would arrive: nowhere if it would
// stay, or if it would be delayed first.
func (p *Publisher) CanMove(ref deadline.Ref, m *Publication, out []Arrival) (MoveOutcome, []Arrival, error) {
	q := p.vh.b.registry.ByID(ref.Queue)
	if q == nil {
		return MoveGone, out, nil
	}
	it := delivery.Item{TTLMillis: -1}
	to, err := p.findTargets(m, &it)
	if err != nil {
		return 0, out, err
	}
	outcome := to.admit(q, it.Message.Bytes)
	if outcome == Moved {
		for _, t := range to.queues {
			out = append(out, Arrival{t.Queue, it.WouldExpire(&t.Queue.Messages, t.CeilingMillis)})
		}
	}
	return outcome, out, nil
}

// moveTargets are the places a published or moved message goes to: queues, or the delayed messages until
// it is due. The zero value is nowhere.
type moveTargets struct {
	queues  []topology.Target
	delayed *delays // nil: to the queues
}

// admit reports whether a message may go there from q. Another message may take the last place
// in a queue before it arrives: then the queue is one over its limit, as with dead letters.
func (to *moveTargets) admit(q *Queue, bytes uint32) MoveOutcome {
	if to.delayed == nil && len(to.queues) == 0 {
		return MoveUnroutable
	}
	for _, t := range to.queues {
		if t.Queue == q {
			return MoveBack
		}
		if t.Queue.Messages.AtLimit(bytes) {
			return MoveFull
		}
	}
	return Moved
}

// entries returns how many entries the message makes, and whether any of them outlives a
// restart.
func (to *moveTargets) entries(f queue.Flags) (n int, persists bool) {
	if to.delayed != nil {
		return 1, true
	}
	return len(to.queues), topology.AnyPersists(to.queues, f)
}

func (to *moveTargets) addTo(b *delivery.Batch, it *delivery.Item) {
	if to.delayed != nil {
		b.AddDelayed(to.delayed, it)
		return
	}
	topology.AddAll(b, to.queues, it)
}

// findTargets returns where a moved message goes, and reads into it what its queues have to
// know of it; nowhere if the exchange is missing.
func (p *Publisher) findTargets(m *Publication, it *delivery.Item) (to moveTargets, err error) {
	view, err := amqp.ViewProperties(m.Properties)
	if err == nil {
		err = p.rights.Publish(m.Exchange)
	}
	if err == nil {
		err = p.rights.Topic(access.Write, p.vh, m.Exchange, m.RoutingKey)
	}
	if err != nil {
		return to, err
	}
	has := message.MarksOf(view.Headers)
	targets, err := p.routes.Find(p.vh.VHost, m.Exchange, m.RoutingKey, topology.ByTool, topology.Headers{Raw: view.Headers}, has&message.KeyMarks != 0)
	if e, ok := errors.AsType[*amqp.Exception](err); ok && e.Code == amqp.NotFound {
		return to, nil
	}
	if err != nil {
		return to, err
	}
	due, err := p.check(m, &view, has, targets, it)
	it.Command = false // nobody sends it now
	if it.Named != nil {
		it.Named.Moved = true
	}
	if err == nil && due != 0 && len(targets) > 0 {
		return p.delayed(it, due)
	}
	to.queues = targets
	return to, err
}

// move holds the message as a consumer would while its successor enters the targets, which
// are locked one at a time. Then one record holds both changes. If no target took it, because
// all were deleted after they were found, it goes back.
func (p *Publisher) move(q *Queue, ref deadline.Ref, m *Publication, it *delivery.Item, to moveTargets) (MoveOutcome, error) {
	b := p.vh.b
	n, persists := to.entries(it.Message.Flags)
	pos, err := b.env.Store.Put(store.Message{
		Exchange: m.Exchange, RoutingKey: m.RoutingKey, Properties: m.Properties, Body: m.Body,
	}, persists, 1+n)
	if err != nil {
		return 0, err
	}
	held, ok := q.Messages.Hold(ref)
	if !ok {
		for range 1 + n {
			b.env.Store.Release(pos)
		}
		return MoveGone, nil
	}
	s := b.env.Begin()
	defer s.Done()
	var t delivery.Transfer
	s.Transfers = append(s.Transfers[:0], &t)
	it.Message.Pos, it.Move = uint64(pos), 0
	batch := delivery.Batches.Get().(*delivery.Batch)
	to.addTo(batch, it)
	batch.Flush(s)
	delivery.Batches.Put(batch)
	outcome := held.Finish(s, t.Into)
	b.env.Store.Release(pos)
	return outcome, nil
}

// Remove drops the ready messages that refs name, as a purge would, and returns how
// many. It skips those that are gone, held or have another deadline. It is
// journaled; see Commit.
func (b *Broker) Remove(refs []deadline.Ref) (removed int) {
	for _, ref := range refs {
		if q := b.registry.ByID(ref.Queue); q != nil && q.Messages.Remove(ref) {
			removed++
		}
	}
	return removed
}
