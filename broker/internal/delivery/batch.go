package delivery

import (
	"sync"

	"curfew/broker/queue"
	"curfew/broker/store"
)

// AddWithFlags is Add for a message that goes to several queues. It is stored durably if one of
// them persists it, so each entry gets flags of its own, made from those of the message.
func (b *Batch) AddWithFlags(q *Queue, ceilingMillis int64, it *Item, flags queue.Flags) {
	if it.Message.Flags = flags; q.Persists(flags) {
		it.Message.Flags |= queue.Durable
	}
	b.Entries++
	b.Add(q, ceilingMillis, it)
}

// AddDelayed adds an item for the delayed messages of a virtual host. A batch is for one virtual
// host.
func (b *Batch) AddDelayed(to Target, it *Item) {
	b.Entries++
	b.add(nil, to, it)
}

// Batches is the pool of batches that no publisher uses, so an idle publisher holds no memory.
var Batches = sync.Pool{New: func() any { return new(Batch) }}

// Batch gathers items per queue, so that each queue is locked once.
type Batch struct {
	targets []targetItems
	used    int
	Entries int
	index   map[*Queue]int // into targets; only when there are many
	last    int
}

// Target is what messages enter: a queue, or the delayed messages of a virtual host.
type Target interface {
	// Publish enters items in order.
	Publish(s *Transition, items []Item)
}

// targetItems is the items for one target.
type targetItems struct {
	q     *Queue // the key it is found by; nil: the delayed messages
	to    Target
	items []Item
}

// targetScan is how many targets are searched one by one. More of them get an index.
const targetScan = 8

// Add adds an item for a queue. ceilingMillis is the longest that it may live there, as set by
// the exchanges on its way; <0: no bound.
func (b *Batch) Add(q *Queue, ceilingMillis int64, it *Item) {
	it.ceilingMillis = ceilingMillis
	b.add(q, q, it)
}

func (b *Batch) add(q *Queue, to Target, it *Item) {
	if b.last >= b.used || b.targets[b.last].q != q {
		b.last = b.find(q, to)
	}
	l := &b.targets[b.last]
	l.items = append(l.items, *it)
}

func (b *Batch) find(q *Queue, to Target) int {
	if b.used <= targetScan {
		for i := range b.targets[:b.used] {
			if b.targets[i].q == q {
				return i
			}
		}
	} else if i, ok := b.index[q]; ok {
		return i
	}
	return b.addTarget(q, to)
}

func (b *Batch) addTarget(q *Queue, to Target) int {
	if b.used == len(b.targets) {
		b.targets = append(b.targets, targetItems{})
	}
	i := b.used
	b.used++
	b.targets[i].q, b.targets[i].to = q, to
	if b.used > targetScan {
		if b.index == nil {
			b.index = map[*Queue]int{}
		}
		for j := len(b.index); j < b.used; j++ {
			b.index[b.targets[j].q] = j
		}
	}
	return i
}

// Flush publishes the items and empties the batch.
func (b *Batch) Flush(s *Transition) {
	b.Publish(s)
	b.reset()
}

// Publish publishes to each target, in the order in which they were first added.
func (b *Batch) Publish(s *Transition) {
	for i := range b.targets[:b.used] {
		l := &b.targets[i]
		l.to.Publish(s, l.items)
		s.awaitFeed(i == b.used-1)
	}
}

// Refuses reports whether a queue would refuse any of its items. A queue that fills up before Publish may then exceed its limit: no
// two queues are locked at the same time.
func (b *Batch) Refuses() bool {
	for i := range b.targets[:b.used] {
		if l := &b.targets[i]; l.q != nil && l.q.Settings().Limited() && l.q.Refuses(l.items...) {
			return true
		}
	}
	return false
}

// Resolve looks for each queue again. named returns the queue that has its name now: another one takes the items, and nil means
// that they enter nothing. Of publishes that enter nothing at all it returns the messages, by the publishes' numbers.
func (b *Batch) Resolve(named func(*Queue) *Queue) (lost map[int]store.Pos) {
	lost = map[int]store.Pos{}
	for i := range b.targets[:b.used] {
		l := &b.targets[i]
		if l.q == nil {
			continue
		}
		switch now := named(l.q); now {
		case l.q:
		case nil:
			for j := range l.items {
				lost[l.items[j].Number] = store.Pos(l.items[j].Message.Pos)
			}
		default:
			l.replace(now)
		}
	}
	for i := 0; i < b.used && len(lost) > 0; i++ {
		l := &b.targets[i]
		for j := 0; j < len(l.items) && l.q != nil && named(l.q) != nil; j++ {
			delete(lost, l.items[j].Number)
		}
	}
	return lost
}

// replace makes the items enter another queue. What the store keeps only until a restart stays transient there.
func (l *targetItems) replace(q *Queue) {
	for i := range l.items {
		if m := &l.items[i].Message; !l.q.Durable {
			m.Flags &^= queue.Durable
		}
	}
	l.q, l.to = q, q
}

// Discard releases the items' references to the store, and empties the batch.
func (b *Batch) Discard(s *store.Store) {
	for i := range b.targets[:b.used] {
		for j := range b.targets[i].items {
			s.Release(store.Pos(b.targets[i].items[j].Message.Pos))
		}
	}
	b.reset()
}

// batchKeep is the largest capacity for items that a target keeps when the batch is emptied: a
// transaction may have needed more.
const batchKeep = 1 << 12

func (b *Batch) reset() {
	for i := range b.targets[:b.used] {
		l := &b.targets[i]
		if l.q, l.to, l.items = nil, nil, l.items[:0]; cap(l.items) > batchKeep {
			l.items = nil
		}
	}
	b.used, b.last, b.Entries = 0, 0, 0
	clear(b.index)
}

// Hold takes one more reference to each item's message, which Discard releases: consumers may
// be done with a message before it is journaled.
func (b *Batch) Hold(s *store.Store) {
	for i := range b.targets[:b.used] {
		for j := range b.targets[i].items {
			s.Retain(store.Pos(b.targets[i].items[j].Message.Pos), 1)
		}
	}
}
