package broker

import (
	"slices"
	"sync"
	"unsafe"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// ErrFull is what Add says of a persistent message while the disk is full: wait
// for Gate to open.
var ErrFull = store.ErrFull

// Publication is one basic.publish with its content, as it came off the wire.
// The slices may be reused after Add.
type Publication struct {
	Exchange, RoutingKey []byte
	Properties           []byte // raw property list
	Body                 []byte
}

// Publisher routes the publishes of one channel and enters them in batches: one
// lock per queue and batch, however many messages. For one goroutine.
type Publisher struct {
	// ReplyTo is the name that stands for ReplyQueue in the messages' reply-to
	// property; "": nobody waits for replies.
	ReplyTo string
	// ForTool lets it publish into dead-letter sub-queues, which clients may not.
	ForTool bool

	vh         *VHost
	rights     *Rights
	routes     routes
	putter     *store.Putter // of all publishers of the goroutine
	batch      *batch        // nil: empty
	count      int           // publishes since the last Flush
	properties []byte        // scratch
	tally      publisherTally
}

// NewPublisher makes a publisher for the named user, with what that user may do.
func (vh *VHost) NewPublisher(user string) *Publisher {
	return vh.b.RightsOf(user, vh.name).NewPublisher(vh)
}

// NewPublisher makes a publisher that asks these rights, in the goroutine that they are
// for. They are those of a user in vh.
func (r *Rights) NewPublisher(vh *VHost) *Publisher {
	if r.putter == nil {
		r.putter = vh.b.store.NewPutter()
	}
	return &Publisher{vh: vh, rights: r, putter: r.putter}
}

// OwnPublisher makes a publisher of the broker's own messages, or of the program's it
// is embedded in: nobody's rights are asked for.
func (vh *VHost) OwnPublisher() *Publisher {
	return &Publisher{vh: vh, putter: vh.b.store.NewPutter()}
}

// Add checks and routes a message and copies it into the store; it enters its
// queues at the next Flush. routed is false when it has none, and the message is
// gone. A direct reply is handed over at once and counts as not routed. A request to
// LockQueue is carried out at once, and its answer is added in its place. One that
// is to be delayed waits for its time, and is routed then. Errors are those of
// basic.publish: 403 not permitted or internal exchange, 404 no exchange, 406 a
// property or header that means something and is wrong; or ErrFull, after which it
// may be tried again. With an error nothing was added.
func (p *Publisher) Add(m *Publication) (routed bool, err error) {
	view, err := amqp.ViewProperties(m.Properties)
	if err != nil {
		return false, err
	}
	if err := p.rights.publish(m.Exchange); err != nil {
		return false, amqp.Answering(err, amqp.BasicPublishID)
	}
	if view.Headers != nil {
		if err := amqp.ValidateTable(view.Headers, amqp.Limits{}); err != nil {
			return false, err
		}
	}
	has := marksOf(view.Headers)
	targets, err := p.routes.find(p.vh, m.Exchange, m.RoutingKey, p.by(), messageHeaders{raw: view.Headers}, has&keyMarks != 0)
	if err == nil {
		err = p.permit(m, &view)
	}
	if err != nil {
		return false, amqp.Answering(err, amqp.BasicPublishID)
	}
	if len(targets) == 0 && asksForLock(m) {
		return true, p.renewLock(m, &view)
	}
	it := item{ttlMillis: -1, number: p.count, move: -1}
	due, err := p.check(m, &view, has, &it)
	if err != nil {
		return false, err
	}
	if due != 0 {
		it.message.ExpiresAt = due
		await(targets, p.vh.b.Now())
		targets, err = p.vh.delayed()
	}
	if err == nil && len(targets) > 0 {
		err = p.put(m, &it, targets)
	}
	if err != nil {
		return false, err
	}
	p.answer(m, &view, has)
	p.count++
	p.tally.add(p, m, len(targets))
	return len(targets) > 0, nil
}

func (p *Publisher) by() who {
	if p.ForTool {
		return byTool
	}
	return byClient
}

// permit is what RabbitMQ asks once it has found the exchange, in its order. It
// names the consumer of replies in m.
func (p *Publisher) permit(m *Publication, view *amqp.PropertyView) error {
	if err := p.rights.topic(access.Write, p.vh, m.Exchange, m.RoutingKey); err != nil {
		return err
	}
	if err := p.nameReplies(m, view); err != nil || view.UserID == nil {
		return err
	}
	return p.rights.speaksFor(view.UserID)
}

// check reads into it what of the properties means something, and when it is to be
// entered (Unix µs; 0 now).
func (p *Publisher) check(m *Publication, view *amqp.PropertyView, has marks, it *item) (due int64, err error) {
	if err := it.read(view, has, len(m.Body)); err != nil || has == 0 {
		return 0, err
	}
	headers := headersOf(view.Headers)
	if err := checkKeys(headers); err != nil {
		return 0, err
	}
	if has&receiptMark != 0 {
		if err := p.checkReceipt(headers, view); err != nil {
			return 0, err
		}
	}
	it.message.ExpiresAt, due, err = p.vh.b.readTimes(headers)
	return due, err
}

// read takes from the properties what a queue has to know of the message.
func (it *item) read(view *amqp.PropertyView, has marks, body int) (err error) {
	it.message.Bytes, it.priority = uint32(body), view.Priority
	if view.DeliveryMode == 2 {
		it.message.Flags |= queue.Durable
	}
	if has&bccMark != 0 {
		it.message.Flags |= queue.Hidden
	}
	if has&receiptMark != 0 {
		it.message.Flags |= queue.Receipt
	}
	if view.HasExpiration {
		it.ttlMillis, err = parseExpiration(view.Expiration)
	}
	return err
}

func (p *Publisher) put(m *Publication, it *item, targets []target) error {
	pos, err := p.putter.Put(&store.Message{
		Exchange: m.Exchange, RoutingKey: m.RoutingKey, Properties: m.Properties, Body: m.Body,
	}, anyPersists(targets, it.message.Flags), len(targets))
	if err != nil {
		return err
	}
	it.message.Pos = uint64(pos)
	if p.batch == nil {
		p.batch = batches.Get().(*batch)
	}
	p.batch.addAll(targets, it)
	return nil
}

// persists says whether a message of these flags outlives a restart in the queue. In a
// quorum queue all do, whatever their delivery mode (RabbitMQ: Quorum Queues, Feature
// comparison).
func (q *Queue) persists(f queue.Flags) bool {
	return q.durable() && (f&queue.Durable != 0 || q.asked.kind == Quorum)
}

func anyPersists(targets []target, f queue.Flags) bool {
	for _, t := range targets {
		if t.queue.persists(f) {
			return true
		}
	}
	return false
}

// addAll adds a message that the store keeps as long as the most careful of its queues
// wants.
func (b *batch) addAll(targets []target, it *item) {
	flags := it.message.Flags
	b.entries += len(targets)
	for _, t := range targets {
		if it.message.Flags = flags; t.queue.persists(flags) {
			it.message.Flags |= queue.Durable
		}
		b.add(t, it)
	}
}

// Pause is to follow Add where Flush or Discard will not soon: what was added holds a
// part of the store open until then (store.Putter).
func (p *Publisher) Pause() { p.putter.End() }

// Pending is how many publishes wait for Flush.
func (p *Publisher) Pending() int { return p.count }

// EntryBytes is what an entry takes in memory until Flush, the room to grow included.
const EntryBytes = 2 * int64(unsafe.Sizeof(item{}))

// Entries is how many there are to be made in queues by Flush: one for each message and
// queue.
func (p *Publisher) Entries() int {
	if p.batch == nil {
		return 0
	}
	return p.batch.entries
}

// Flush enters what was added. refused lists, by their place in the batch, the
// publishes that a full queue refused (x-overflow: reject-publish), ascending and
// each once; it is valid until the next call.
func (p *Publisher) Flush(refused []int) []int {
	p.count = 0
	p.Pause()
	p.tally.flush(p.vh.b)
	if p.batch == nil {
		return refused[:0]
	}
	s := p.vh.b.step()
	if p.rights != nil {
		p.rights.pacing.tell(s)
	}
	p.batch.flush(s)
	p.endBatch()
	if p.rights != nil {
		p.rights.pacing.heed(s)
	}
	refused = append(refused[:0], s.refused...)
	s.done()
	slices.Sort(refused)
	return slices.Compact(refused)
}

// Discard gives up what was added since the last Flush.
func (p *Publisher) Discard() {
	p.count = 0
	p.Pause()
	p.tally.forget()
	if p.batch != nil {
		p.batch.discard(p.vh.b.store)
		p.endBatch()
	}
}

func (p *Publisher) endBatch() {
	batches.Put(p.batch)
	p.batch = nil
}

// batches are those that no publisher uses: one that has published keeps no memory for
// the next time.
var batches = sync.Pool{New: func() any { return new(batch) }}

// batch gathers items per queue, so that each queue is locked once.
type batch struct {
	lanes   []lane
	used    int
	entries int
	index   map[*Queue]int // into lanes; only once there are many
	last    int
}

type lane struct {
	q     *Queue
	items []item
}

// laneScan is how many queues are found by looking at each.
const laneScan = 8

func (b *batch) add(t target, it *item) {
	if b.last >= b.used || b.lanes[b.last].q != t.queue {
		b.last = b.lane(t.queue)
	}
	it.ceilingMillis = t.ceilingMillis
	l := &b.lanes[b.last]
	l.items = append(l.items, *it)
}

func (b *batch) lane(q *Queue) int {
	if b.used <= laneScan {
		for i := range b.lanes[:b.used] {
			if b.lanes[i].q == q {
				return i
			}
		}
	} else if i, ok := b.index[q]; ok {
		return i
	}
	return b.newLane(q)
}

func (b *batch) newLane(q *Queue) int {
	if b.used == len(b.lanes) {
		b.lanes = append(b.lanes, lane{})
	}
	i := b.used
	b.used++
	b.lanes[i].q = q
	if b.used > laneScan {
		if b.index == nil {
			b.index = map[*Queue]int{}
		}
		for j := len(b.index); j < b.used; j++ {
			b.index[b.lanes[j].q] = j
		}
	}
	return i
}

// flush publishes all and forgets it.
func (b *batch) flush(s *step) {
	b.publish(s)
	b.reset()
}

// publish publishes to each queue in the order the queues were first named.
func (b *batch) publish(s *step) {
	for i := range b.lanes[:b.used] {
		l := &b.lanes[i]
		l.q.publish(s, l.items)
	}
}

// discard gives back the references that the items hold to the store.
func (b *batch) discard(s *store.Store) {
	for i := range b.lanes[:b.used] {
		for j := range b.lanes[i].items {
			s.Release(store.Pos(b.lanes[i].items[j].message.Pos))
		}
	}
	b.reset()
}

// batchKeep bounds the room for items that an emptied lane keeps: a transaction
// may have needed much.
const batchKeep = 1 << 12

func (b *batch) reset() {
	for i := range b.lanes[:b.used] {
		l := &b.lanes[i]
		if l.q, l.items = nil, l.items[:0]; cap(l.items) > batchKeep {
			l.items = nil
		}
	}
	b.used, b.last, b.entries = 0, 0, 0
	clear(b.index)
}
