package broker

import (
	"curfew/broker/internal/delivery"
	"curfew/broker/queue"
)

// Settling is how a transaction settles some deliveries of one queue, as Queue.Messages.Settle does.
type Settling struct {
	Queue    *Queue
	How      Settlement
	Seqs     []queue.Seq
	Consumer *Consumer
}

// Rejecting are the queues of settlings that may make dead letters: all but acks.
func Rejecting(all []Settling) (queues []*Queue) {
	for i := range all {
		if x := &all[i]; x.How != Ack && (len(queues) == 0 || queues[len(queues)-1] != x.Queue) {
			queues = append(queues, x.Queue)
		}
	}
	return queues
}

// Reroute prepares a Transact: it looks up by their names the queues that publishes were routed to. One that was deleted
// and declared again takes what was for the old one. Reroute returns the publishes that no queue takes any more, by
// their place in the batch; they are valid until Transact.
func (p *Publisher) Reroute() map[int]Publication {
	if p.batch == nil {
		return nil
	}
	lost := map[int]Publication{}
	for number, pos := range p.batch.Resolve(func(q *delivery.Queue) *delivery.Queue {
		if now, err := p.vh.Queues.Get(q.Name); err == nil {
			return &now.Messages
		}
		return nil
	}) {
		lost[number] = Publication(p.vh.b.env.Store.View(pos))
	}
	return lost
}

// Transact is Flush for a transaction: it enters what was added and then settles. Each
// queue gets its publishes at once, one queue after another. After a crash, all of it or
// nothing is found, with two exceptions: dead letters move separately, and of more than
// store.maxTransaction changes (a message enters one queue, an ack) a prefix may be found,
// publishes first. With AllOrNone nothing is published if a queue would refuse a part of it.
func (p *Publisher) Transact(settlings []Settling, refused []int) []int {
	added := p.count
	p.count = 0
	p.Pause()
	p.counts.flush(p.vh.b)
	s := p.begin()
	if p.AllOrNone && p.batch != nil && p.batch.Refuses() {
		p.batch.Discard(s.Env.Store)
		p.endBatch()
		for i := range added {
			s.Refused = append(s.Refused, i)
		}
		s.Env.Counters.Refused.Add(uint64(added))
	}
	s.Whole, s.AllOrNone = true, p.AllOrNone
	if p.batch != nil {
		p.batch.Hold(s.Env.Store)
		p.batch.Publish(s)
	}
	s.AllOrNone = false
	for i := range settlings {
		x := &settlings[i]
		x.Queue.Messages.SettleWith(s, x.How, x.Seqs, x.Consumer)
	}
	s.Whole = false
	s.Env.Store.Transacted(s.Entered, s.Settled)
	s.Entered, s.Settled = s.Entered[:0], s.Settled[:0]
	if p.batch != nil {
		p.batch.Discard(s.Env.Store)
		p.endBatch()
	}
	return p.end(s, refused)
}
