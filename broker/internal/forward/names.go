package forward

import (
	"fmt"
	"hash/maphash"

	"curfew/broker/amqp"
	"curfew/broker/internal/message"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// name is what a command calls a delayed message: the exchange and the user of both, and the
// message-id.
type name struct{ exchange, user, id []byte }

// nameOf is the name of a stored message, which it aliases, and the secret of its id, if it has one;
// false if it has no message-id.
func nameOf(m store.Message) (n name, secret []byte, ok bool) {
	view, err := amqp.ViewProperties(m.Properties)
	if err != nil {
		return name{exchange: m.Exchange}, nil, false
	}
	user, secret := message.ScheduledIn(&view)
	return name{m.Exchange, user, view.MessageID}, secret, len(view.MessageID) > 0
}

// nameLocked is nameOf of the message at a position, and notes how much was read.
func (d *Schedule) nameLocked(pos uint64) (n name, secret []byte, ok bool) {
	m := d.env.Store.View(store.Pos(pos))
	d.read += len(m.Properties)
	return nameOf(m)
}

// idOf is the id of a delayed message with a secret. Who knows it, and may publish to the exchange,
// may change the message.
func idOf(seq queue.Seq, secret []byte) string { return fmt.Sprintf("%d.%s", seq, secret) }

// names finds delayed messages by their names. It knows a name by a hash, so it takes about 40 bytes
// for a message that has one, and nothing for others. Whoever finds a message has to compare its
// name. Guarded by the schedule's mu.
type names struct {
	seed         maphash.Seed
	newest       map[uint64]queue.Seq
	older, newer map[queue.Seq]queue.Seq // of messages with the same hash only
	ended        [2]map[uint64]Result    // of names whose messages have left; the second map is older
}

// endedKept is how many names whose messages have left each of the two maps holds. When the first
// is full the second is forgotten.
const endedKept = 1 << 14

func (x *names) init() {
	x.seed, x.ended[0] = maphash.MakeSeed(), map[uint64]Result{}
	x.shrink()
}

// shrink makes new maps, while no message waits: maps keep the memory for what they have held.
func (x *names) shrink() {
	x.newest, x.older, x.newer = map[uint64]queue.Seq{}, map[queue.Seq]queue.Seq{}, map[queue.Seq]queue.Seq{}
}

func (x *names) hash(n name) uint64 {
	var h maphash.Hash
	h.SetSeed(x.seed)
	for _, part := range [][]byte{n.exchange, n.user, n.id} {
		h.Write(part)
		h.WriteByte(0)
	}
	return h.Sum64()
}

// add adds a message that has just been published.
func (x *names) add(n name, seq queue.Seq) {
	key := x.hash(n)
	if before, known := x.newest[key]; known {
		x.older[seq], x.newer[before] = before, seq
	}
	x.newest[key] = seq
}

// drop removes a message that leaves, with its result.
func (x *names) drop(n name, seq queue.Seq, r Result) {
	key := x.hash(n)
	older, hasOlder := x.older[seq]
	newer, hasNewer := x.newer[seq]
	delete(x.older, seq)
	delete(x.newer, seq)
	switch {
	case hasOlder && hasNewer:
		x.older[newer], x.newer[older] = older, newer
	case hasNewer:
		delete(x.older, newer)
	case hasOlder:
		delete(x.newer, older)
		x.newest[key] = older
	default:
		delete(x.newest, key)
	}
	x.note(key, r)
}

// note remembers what became of a name.
func (x *names) note(key uint64, r Result) {
	if len(x.ended[0]) >= endedKept {
		x.ended[0], x.ended[1] = map[uint64]Result{}, x.ended[0]
	}
	x.ended[0][key] = r
}

// endOf is what became of the message that had a name last, as far as it is known.
func (x *names) endOf(n name) Result {
	key := x.hash(n)
	for _, known := range x.ended {
		if r, ok := known[key]; ok {
			return r
		}
	}
	return NotFound
}
