package broker

import (
	"slices"
	"unsafe"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/catalog"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/message"
	"curfew/broker/internal/topology"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// ErrFull is the error of Add for a persistent message while the disk is full. Wait until the
// alarm clears (Broker.Alarm).
var ErrFull = store.ErrFull

// ErrCostly is the error of Add, where TakesTurns is set, for a message that takes long to route
// or to enter its queues. Add it again in a turn (Rights.BeginTurn), and flush it in the same.
var ErrCostly = topology.ErrCostly

// costlyTargets is to how many queues a message is costly.
const costlyTargets = 1000

// Publication is one basic.publish with its content, as it came off the wire.
// The slices may be reused after Add.
type Publication struct {
	Exchange, RoutingKey []byte
	Properties           []byte // raw property list
	Body                 []byte
}

// Publisher routes the publishes of one channel and enters them in batches: one
// lock per queue and batch, however many messages there are. For one goroutine.
type Publisher struct {
	// ReplyTo is the name that stands for ReplyQueue in the messages' reply-to
	// property; "": nobody waits for replies.
	ReplyTo string
	// ForTool lets it publish into dead-letter sub-queues, which clients may not.
	ForTool bool
	// TakesTurns makes Add refuse what is costly, outside of a turn, with ErrCostly.
	TakesTurns bool
	// AllOrNone makes a Transact enter nothing if a queue would refuse one of its publishes.
	AllOrNone bool
	// Numbered are the delayed messages that the last Flush or Transact has entered, by their numbers in VHost.Delayed; with AllOrNone
	// also those that have entered queues. It is valid until the next call.
	Numbered []Numbered

	vh         *VHost
	rights     *Rights
	routes     topology.Routes
	putter     *store.Putter   // of all publishers of the goroutine
	batch      *delivery.Batch // nil: empty
	count      int             // publishes since the last Flush
	properties []byte          // scratch
	counts     publisherCounts
	delays     delayHeader
}

// delayHeader is the header that delays what is published to an exchange, as of a version of the topology.
type delayHeader struct {
	exchange, name string
	version        uint64
}

// NewPublisher makes a publisher for the named user, with what that user may do.
func (vh *VHost) NewPublisher(user string) *Publisher {
	return vh.b.RightsOf(user, vh.Name()).NewPublisher(vh)
}

// NewPublisher makes a publisher with these rights, which are those of a user in vh. It belongs
// to the same goroutine as the rights.
func (r *Rights) NewPublisher(vh *VHost) *Publisher {
	if r.putter == nil {
		r.putter = vh.b.env.Store.NewPutter()
	}
	r.turn.of = &vh.share
	return &Publisher{vh: vh, rights: r, putter: r.putter}
}

// OwnPublisher makes a publisher for messages of the broker itself, or of the program that
// embeds it: no rights are checked.
func (vh *VHost) OwnPublisher() *Publisher {
	return (&Rights{b: vh.b, own: true, Rights: catalog.AllRights()}).NewPublisher(vh)
}

// Add checks and routes a message and copies it into the store; it enters its
// queues at the next Flush. routed is false if no queue takes it; then the message is
// gone. A direct reply is handed over at once and counts as not routed. A request to
// LockQueue is carried out at once, and its answer is added in its place. A
// delayed message waits until it is due, and is routed then. A command that changes one
// (x-cancel, x-replace, x-reschedule) counts as routed. Errors are those of
// basic.publish: 403 not permitted or internal exchange, 404 no exchange, 406 an invalid
// value of a property or header that has a meaning; or ErrFull, after which Add may be
// tried again; or ErrCostly. With an error nothing was added.
func (p *Publisher) Add(m *Publication) (routed bool, err error) {
	var view amqp.PropertyView
	if err := view.Parse(m.Properties); err != nil {
		return false, err
	}
	if err := p.rights.Publish(m.Exchange); err != nil {
		return false, amqp.Answering(err, amqp.BasicPublishID)
	}
	var has message.Marks
	if view.Headers != nil {
		if err := amqp.ValidateTable(view.Headers, amqp.Limits{}); err != nil {
			return false, err
		}
		has = message.MarksOf(view.Headers)
	}
	p.routes.Cheap = p.TakesTurns && !p.rights.turn.costly
	targets, err := p.routes.Find(p.vh.VHost, m.Exchange, m.RoutingKey, p.by(), topology.Headers{Raw: view.Headers}, has&message.KeyMarks != 0)
	if p.routes.Cheap && len(targets) > costlyTargets {
		err = ErrCostly
	}
	if err == nil {
		err = p.permit(m, &view, has)
	}
	if err != nil {
		return false, amqp.Answering(err, amqp.BasicPublishID)
	}
	if len(targets) == 0 && len(m.Exchange) == 0 && string(m.RoutingKey) == LockQueue {
		return true, p.renewLock(m, &view)
	}
	it := delivery.Item{TTLMillis: -1, Number: p.count, Move: -1}
	due, err := p.check(m, &view, has, targets, &it)
	if err != nil {
		return false, err
	}
	if due != 0 {
		markAwaited(targets, p.vh.b.Now())
	}
	to := moveTargets{queues: targets}
	if due != 0 || it.Command { // a message that waits, or changes one that does, expires only later
		p.sign(m, &view, has)
		to, err = p.delayed(&it, due)
	}
	entries := 0
	if err == nil {
		entries, err = p.put(m, &it, to)
	}
	if err != nil {
		return false, err
	}
	p.answer(m, &view, has)
	p.count++
	p.counts.add(p, m, entries)
	return entries > 0, nil
}

func (p *Publisher) by() topology.Sender {
	if p.ForTool {
		return topology.ByTool
	}
	return topology.ByClient
}

// permit checks what RabbitMQ checks once it has found the exchange, in its order. It writes
// the name of the consumer of replies into m.
func (p *Publisher) permit(m *Publication, view *amqp.PropertyView, has message.Marks) error {
	if err := p.rights.Topic(access.Write, p.vh, m.Exchange, m.RoutingKey); err != nil {
		return err
	}
	if has&message.KeyMarks != 0 && p.rights.RestrictsTopics(m.Exchange) { // it has CC or BCC
		for _, key := range message.FurtherKeys(message.HeadersOf(view.Headers)) {
			if err := p.rights.Topic(access.Write, p.vh, m.Exchange, []byte(key)); err != nil {
				return err
			}
		}
	}
	if err := p.nameReplies(m, view); err != nil || view.UserID == nil {
		return err
	}
	return p.rights.SpeaksFor(view.UserID)
}

// check reads the properties that have a meaning to the broker into it, and returns when the
// message is to be enqueued (0: now).
func (p *Publisher) check(m *Publication, view *amqp.PropertyView, has message.Marks, targets []topology.Target, it *delivery.Item) (due deadline.Instant, err error) {
	if err := it.Read(view, has, len(m.Body)); err != nil || view.Headers == nil {
		return 0, err
	}
	delays := p.delayHeader(m.Exchange, targets)
	named := delays != "" || slices.ContainsFunc(targets, func(t topology.Target) bool { return t.Queue.Settings().Names().DeadlineHeader != "" })
	if has == 0 && !named {
		return 0, nil
	}
	headers := message.HeadersOf(view.Headers)
	if err := message.CheckKeys(headers); err != nil {
		return 0, err
	}
	if has&message.ReceiptMark != 0 {
		if err := p.checkReceipt(headers, view); err != nil {
			return 0, err
		}
	}
	now, stamp := p.vh.b.env.Clock.Read()
	ahead := p.vh.b.env.Clock.Ahead()
	it.Message.ExpiresAt, due, err = message.ReadTimes(headers, now, stamp, ahead)
	if err == nil && named {
		it.Named = &message.Named{Headers: headers, Now: now, Ahead: ahead}
		due, err = readNamed(it.Named, delays, targets, due, stamp)
	}
	if err == nil && has&(message.CommandMark|message.AnswerMark) != 0 {
		due, err = p.checkCommand(headers, view, it, due, stamp)
	}
	return due, err
}

// readNamed reads the headers that policies name: it returns the later of due and the instant in the
// header delays, and the first error among the deadlines of the targets.
func readNamed(headers *message.Named, delays string, targets []topology.Target, due, stamp deadline.Instant) (deadline.Instant, error) {
	later, err := headers.Due(delays, stamp)
	for i := 0; i < len(targets) && err == nil; i++ {
		_, err = headers.Deadline(targets[i].Queue.Settings().Names().DeadlineHeader)
	}
	return max(due, later), err
}

// delayHeader is the header that delays a message, by a policy for its exchange; for the default
// exchange, which has none, it is that of the queue that the key names. "": none.
func (p *Publisher) delayHeader(exchange []byte, targets []topology.Target) string {
	switch version := p.routes.Version(); {
	case len(exchange) == 0 && len(targets) == 0:
		return ""
	case len(exchange) == 0:
		return targets[0].Queue.Settings().Names().DelayHeader
	case p.delays.version != version || p.delays.exchange != string(exchange):
		_, _, set, _ := p.vh.Exchanges.PoliciesOf(string(exchange))
		p.delays = delayHeader{exchange: string(exchange), version: version}
		p.delays.name, _ = set.Text("delay-header")
	}
	return p.delays.name
}

// delayed is where a message waits until it is due. Meanwhile it outlives a restart, whatever its delivery mode, as with the
// delayed-message plugin; a queue that it enters then takes it by its delivery mode.
func (p *Publisher) delayed(it *delivery.Item, due deadline.Instant) (to moveTargets, err error) {
	it.Message.ExpiresAt, it.Named = due, nil
	it.Message.Flags |= queue.Durable
	to.delayed, err = p.vh.schedule()
	return to, err
}

// put copies a message into the store and adds it to the batch, and returns how many entries it makes there.
func (p *Publisher) put(m *Publication, it *delivery.Item, to moveTargets) (entries int, err error) {
	entries, persists := to.entries(it.Message.Flags)
	if entries == 0 {
		return 0, nil
	}
	pos, err := p.putter.Put((*store.Message)(m), persists, entries)
	if err != nil {
		return 0, err
	}
	it.Message.Pos = uint64(pos)
	if p.batch == nil {
		p.batch = delivery.Batches.Get().(*delivery.Batch)
	}
	to.addTo(p.batch, it)
	return entries, nil
}

// Pause must follow Add if Flush or Discard will not follow soon: until then, what was added
// holds a part of the store open (store.Putter).
func (p *Publisher) Pause() { p.putter.End() }

// EntryBytes is the memory that an entry takes until Flush, with the spare capacity of its
// slice.
const EntryBytes = 2 * int64(unsafe.Sizeof(delivery.Item{}))

// Entries is the number of entries that Flush will make: one for each message and queue.
func (p *Publisher) Entries() int {
	if p.batch == nil {
		return 0
	}
	return p.batch.Entries
}

// Flush makes what was added enter its queues. refused lists, by their place in the batch, the
// publishes that a full queue refused (x-overflow: reject-publish), ascending and
// each once; it is valid until the next call.
func (p *Publisher) Flush(refused []int) []int {
	p.count = 0
	p.Pause()
	p.counts.flush(p.vh.b)
	if p.batch == nil {
		return refused[:0]
	}
	s := p.begin()
	p.batch.Flush(s)
	p.endBatch()
	return p.end(s, refused)
}

// begin begins a transition in which messages enter queues.
func (p *Publisher) begin() *delivery.Transition {
	s := p.vh.b.env.Begin()
	s.Awaits, s.Paced = !p.rights.own, p.rights.Pacing.On
	return s
}

// end ends a transition, and returns the publishes that were refused in refused.
func (p *Publisher) end(s *delivery.Transition, refused []int) []int {
	p.rights.Pacing.After(s)
	refused, p.Numbered = append(refused[:0], s.Refused...), append(p.Numbered[:0], s.Numbered...)
	s.Done()
	slices.Sort(refused)
	return slices.Compact(refused)
}

// Discard gives up what was added since the last Flush.
func (p *Publisher) Discard() {
	p.count = 0
	p.Pause()
	p.counts.forget()
	if p.batch != nil {
		p.batch.Discard(p.vh.b.env.Store)
		p.endBatch()
	}
}

func (p *Publisher) endBatch() {
	delivery.Batches.Put(p.batch)
	p.batch = nil
}

// checkReceipt refuses an invalid request for a receipt: a header that is not a boolean, no
// reply-to, or a user who may not publish to it.
func (p *Publisher) checkReceipt(headers amqp.Table, view *amqp.PropertyView) error {
	wanted, isBool := headers[message.ReceiptHeader].(bool)
	switch {
	case !isBool:
		return message.BadPublish("invalid %s header type; expected boolean", message.ReceiptHeader)
	case !wanted:
		return nil
	case len(view.ReplyTo) == 0:
		return message.BadPublish("%s header needs a reply-to property", message.ReceiptHeader)
	}
	return amqp.Answering(p.rights.Exchange(access.Write, ""), amqp.BasicPublishID)
}
