package broker

import (
	"slices"

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
	vh     *VHost
	rights *Rights
	routes routes
	batch  batch
	count  int // publishes since the last Flush
	tally  publisherTally
}

// NewPublisher makes a publisher for a channel of the named user, with what that
// user may do.
func (vh *VHost) NewPublisher(user string) *Publisher {
	return &Publisher{vh: vh, rights: vh.b.RightsOf(user, vh.name)}
}

// Add checks and routes a message and copies it into the store; it enters its
// queues at the next Flush. routed is false when it has none, and the message is
// gone. Errors are those of basic.publish: 403 not permitted or internal exchange,
// 404 no exchange, 406 bad expiration, user-id or CC; or ErrFull, after which it may be
// tried again. With an error nothing was added.
func (p *Publisher) Add(m *Publication) (routed bool, err error) {
	view, err := amqp.ViewProperties(m.Properties)
	if err != nil {
		return false, err
	}
	if err := p.rights.publish(m.Exchange); err != nil {
		return false, amqp.Answering(err, amqp.BasicPublishID)
	}
	if err := checkHeaders(view.Headers); err != nil {
		return false, err
	}
	queues, err := p.routes.find(p.vh, m.Exchange, m.RoutingKey, false, view.Headers)
	if err == nil {
		err = p.permit(m, &view)
	}
	if err != nil {
		return false, amqp.Answering(err, amqp.BasicPublishID)
	}
	ttl := int64(-1)
	if view.HasExpiration {
		if ttl, err = parseExpiration(view.Expiration); err != nil {
			return false, err
		}
	}
	if len(queues) == 0 {
		p.count++
		p.tally.add(p, m, 0)
		return false, nil
	}
	it := item{
		message:   queue.Message{Bytes: uint32(len(m.Body))},
		priority:  view.Priority,
		ttlMillis: ttl, number: p.count, move: -1,
	}
	if view.DeliveryMode == 2 {
		it.message.Flags |= queue.Durable
	}
	if carriesBCC(view.Headers) {
		it.message.Flags |= queue.Hidden
	}
	if err := p.put(m, it, queues); err != nil {
		return false, err
	}
	p.count++
	p.tally.add(p, m, len(queues))
	return true, nil
}

// permit is what RabbitMQ asks once it has found the exchange.
func (p *Publisher) permit(m *Publication, view *amqp.PropertyView) error {
	if err := p.rights.topic(access.Write, p.vh, m.Exchange, m.RoutingKey); err != nil {
		return err
	}
	if view.UserID == nil {
		return nil
	}
	return p.rights.speaksFor(view.UserID)
}

// checkHeaders refuses what routing could not read.
func checkHeaders(headers []byte) error {
	if headers == nil {
		return nil
	}
	if err := amqp.ValidateTable(headers, amqp.Limits{}); err != nil {
		return err
	}
	if carriesKeys(headers) {
		return checkKeys(lazyTable(headers)())
	}
	return nil
}

func (p *Publisher) put(m *Publication, it item, queues []*Queue) error {
	durable := false
	for _, q := range queues {
		durable = durable || q.durable()
	}
	durable = durable && it.message.Flags&queue.Durable != 0
	pos, err := p.vh.b.store.Put(store.Message{
		Exchange: m.Exchange, RoutingKey: m.RoutingKey, Properties: m.Properties, Body: m.Body,
	}, durable, len(queues))
	if err != nil {
		return err
	}
	it.message.Pos = uint64(pos)
	for _, q := range queues {
		p.batch.add(q, it)
	}
	return nil
}

// Pending is how many publishes wait for Flush.
func (p *Publisher) Pending() int { return p.count }

// Flush enters what was added. refused lists, by their place in the batch, the
// publishes that a full queue refused (x-overflow: reject-publish), ascending and
// each once; it is valid until the next call.
func (p *Publisher) Flush(refused []int) []int {
	p.count = 0
	p.tally.flush(p.vh.b)
	if p.batch.empty() {
		return refused[:0]
	}
	s := p.vh.b.step()
	p.batch.flush(s)
	refused = append(refused[:0], s.refused...)
	s.done()
	slices.Sort(refused)
	return slices.Compact(refused)
}

// Discard gives up what was added since the last Flush.
func (p *Publisher) Discard() {
	p.count = 0
	p.tally.forget()
	p.batch.discard(p.vh.b.store)
}

// batch gathers items per queue, so that each queue is locked once.
type batch struct {
	lanes []lane
	used  int
	index map[*Queue]int // into lanes; only once there are many
	last  int
}

type lane struct {
	q     *Queue
	items []item
}

// laneScan is how many queues are found by looking at each.
const laneScan = 8

func (b *batch) empty() bool { return b.used == 0 }

func (b *batch) add(q *Queue, it item) {
	if b.last < b.used && b.lanes[b.last].q == q {
		b.lanes[b.last].items = append(b.lanes[b.last].items, it)
		return
	}
	b.last = b.lane(q)
	b.lanes[b.last].items = append(b.lanes[b.last].items, it)
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

// flush publishes to each queue in the order the queues were first named.
func (b *batch) flush(s *step) {
	for i := range b.lanes[:b.used] {
		l := &b.lanes[i]
		l.q.publish(s, l.items)
	}
	b.reset()
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
	b.used, b.last = 0, 0
	clear(b.index)
}
