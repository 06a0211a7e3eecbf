package broker

import (
	"slices"

	"curfew/broker/queue"
	"curfew/broker/store"
)

// MaxTransaction is how many changes a transaction may make and still be found whole or
// not at all after a crash.
const MaxTransaction = store.MaxTransaction

// Settling is what a transaction makes of some deliveries of one queue, as Queue.Settle.
type Settling struct {
	Queue    *Queue
	How      Settlement
	Seqs     []queue.Seq
	Consumer *Consumer
}

// Transact is Flush for a transaction: it enters what was added and then settles. Each
// queue sees its publishes at once, one queue after another. After a crash all of it is
// found or nothing, except that what goes to a dead-letter exchange moves by itself, and
// that of more than MaxTransaction changes (a message's entering one queue, an ack) a
// prefix is found, publishes first.
func (p *Publisher) Transact(settlings []Settling, refused []int) []int {
	p.count = 0
	p.Pause()
	p.tally.flush(p.vh.b)
	s := p.vh.b.step()
	if p.rights != nil {
		p.rights.pacing.tell(s)
	}
	s.whole = true
	if p.batch != nil {
		p.batch.hold(s.b.store)
		p.batch.publish(s)
	}
	for i := range settlings {
		x := &settlings[i]
		x.Queue.settle(s, x.How, x.Seqs, x.Consumer)
	}
	s.whole = false
	s.b.store.Transacted(s.entered, s.left)
	s.entered, s.left = s.entered[:0], s.left[:0]
	if p.batch != nil {
		p.batch.discard(s.b.store)
		p.endBatch()
	}
	if p.rights != nil {
		p.rights.pacing.heed(s)
	}
	refused = append(refused[:0], s.refused...)
	s.done()
	slices.Sort(refused)
	return slices.Compact(refused)
}

// hold takes a reference of the batch's own to each item's message, which discard gives
// back: consumers may be done with it before it is journaled.
func (b *batch) hold(s *store.Store) {
	for i := range b.lanes[:b.used] {
		for j := range b.lanes[i].items {
			s.Retain(store.Pos(b.lanes[i].items[j].message.Pos), 1)
		}
	}
}
