package topology

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"time"

	"curfew/broker/amqp"
	"curfew/broker/exchange"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/message"
	"curfew/broker/internal/queueargs"
	"curfew/broker/queue"
)

// Target is a queue that a message goes to.
type Target struct {
	Queue         *Queue
	CeilingMillis int64 // the longest it may live there, by the exchanges on its way; <0 none
	Bound         bool  // it comes by bindings only, and not by the queue's name
}

// Headers are a message's headers, raw and, once they are needed, parsed.
type Headers struct {
	Raw   []byte
	Table amqp.Table // Raw, once parsed
}

func (h *Headers) parse() amqp.Table {
	if h.Table == nil {
		h.Table = message.HeadersOf(h.Raw)
	}
	return h.Table
}

// routing is the work of finding one message's queues.
type routing struct {
	vh      *VHost
	key     []byte
	more    [][]byte // further keys (CC, BCC)
	headers Headers
	parse   func() amqp.Table // parses the headers
	out     TargetSet
	through []*Exchange // exchanges already passed
	found   []destination
	again   bool   // an exchange was reached that had already been passed
	byTable bool   // the route is not remembered: a headers exchange was passed, or one that notes its use
	by      Sender // of the message
	bound   bool   // it was sent to an exchange other than the default one
	refused error  // by the queue that a key names
	ceiling int64  // of the exchanges passed on the way here, ms; <0 none
}

// routeLocked adds the queues that x sends the message to, each once and with the lowest ceiling
// of all ways to it; nil is the default exchange. Called with vh.mu held for reading, as all
// that it calls.
func (r *routing) routeLocked(x *Exchange) {
	if x != nil {
		r.passLocked(x)
		if r.again {
			r.lowerLocked()
		}
		return
	}
	r.toQueueLocked(r.key)
	for _, key := range r.more {
		r.toQueueLocked(key)
	}
}

// toQueueLocked sends the message to the queue of that name, as the default exchange does.
func (r *routing) toQueueLocked(name []byte) {
	q, ok := r.vh.queues[string(name)]
	if !ok {
		q, ok = r.vh.queues[queueargs.Canonical(string(name))]
	}
	if !ok {
		return
	}
	if q.Arguments.Keeps {
		r.refuse(q)
	}
	r.addQueue(q)
}

// refuse prevents clients from publishing into a dead-letter sub-queue.
func (r *routing) refuse(q *Queue) {
	if r.by == ByClient && r.refused == nil {
		r.refused = q.OnlyDeadLetters()
	}
}

// Sender is the kind of client or part of the broker that publishes a message.
type Sender uint8

const (
	ByClient Sender = iota
	ByTool          // replays and imports: into dead-letter sub-queues too
	ByBroker        // through internal exchanges too
	ByNobody        // as ByBroker, but the message is not sent: only its targets are looked up
)

// passLocked sends the message with all its keys through x and the exchanges bound to it. If x has
// no binding for any of the keys, it also passes the alternate exchange (RabbitMQ: Alternate
// Exchanges).
func (r *routing) passLocked(x *Exchange) {
	for _, been := range r.through {
		if been == x {
			r.again = true
			return
		}
	}
	r.through = append(r.through, x)
	before := r.ceiling
	r.ceiling = queueargs.LowerTTL(r.ceiling, x.ttlMillis)
	r.byTable = r.byTable || x.kind == exchange.Headers
	if x.idleMillis != 0 {
		r.byTable = true
		if r.by != ByNobody {
			x.lastUsedAt.Store(int64(r.vh.registry.env.Clock.Now()))
		}
	}
	bound := r.followLocked(x, r.key)
	if x.kind == exchange.Direct || x.kind == exchange.Topic { // others ignore keys
		for _, key := range r.more {
			bound = r.followLocked(x, key) || bound
		}
	}
	if !bound && x.alternate != "" {
		if alternate, ok := r.vh.exchanges[x.alternate]; ok { // a missing one is ignored
			r.passLocked(alternate)
		}
	}
	r.ceiling = before
}

// followLocked sends the message along the bindings of x for one of its keys. It returns false if
// there are none.
func (r *routing) followLocked(x *Exchange, key []byte) (bound bool) {
	from := len(r.found)
	r.found = x.router.Route(key, r.parse, r.found)
	found := r.found[from:]
	for _, d := range found {
		if d.queue != nil {
			r.addQueue(d.queue)
		} else {
			r.passLocked(d.exchange)
		}
	}
	r.found = r.found[:from]
	return len(found) > 0
}

// lowerLocked applies the ceilings of those ways that passLocked skipped because they join ways it
// had already taken. An exchange's ceiling applies to everything behind it: with the lowest
// first, each exchange is passed at most once more.
func (r *routing) lowerLocked() {
	r.again = false
	var capped []*Exchange
	for _, x := range r.through {
		if x.ttlMillis >= 0 {
			capped = append(capped, x)
		}
	}
	slices.SortStableFunc(capped, func(a, b *Exchange) int { return cmp.Compare(a.ttlMillis, b.ttlMillis) })
	r.through = r.through[:0]
	for _, x := range capped {
		r.passLocked(x)
	}
	r.again = false
}

func (r *routing) addQueue(q *Queue) { r.out.add(Target{q, r.ceiling, r.bound}) }

// TargetSet holds the queues that a message goes to, each once.
type TargetSet struct {
	List  []Target
	index map[*Queue]int // into List; made for the first search in a long list
}

// targetScan is how long a list may be to be searched without an index.
const targetScan = 16

// add adds t. If its queue is already in the set, the lower ceiling counts.
func (s *TargetSet) add(t Target) {
	if i := s.find(t.Queue); i >= 0 {
		have := &s.List[i]
		have.CeilingMillis = queueargs.LowerTTL(have.CeilingMillis, t.CeilingMillis)
		have.Bound = have.Bound && t.Bound
		return
	}
	s.List = append(s.List, t)
}

// find returns the index of a queue in List, -1 if it is not there.
func (s *TargetSet) find(q *Queue) int {
	if len(s.List) <= targetScan {
		return slices.IndexFunc(s.List, func(t Target) bool { return t.Queue == q })
	}
	if s.index == nil {
		s.index = map[*Queue]int{}
	}
	for i := len(s.index); i < len(s.List); i++ {
		s.index[s.List[i].Queue] = i
	}
	if i, ok := s.index[q]; ok {
		return i
	}
	return -1
}

// AddAll adds targets that are all different.
func (s *TargetSet) AddAll(targets []Target) {
	if len(s.List) == 0 {
		s.List = append(s.List, targets...)
		return
	}
	for _, t := range targets {
		s.add(t)
	}
}

// setKeep is for how many targets an emptied set may keep memory.
const setKeep = 1 << 10

// Reset empties the set and keeps its memory for reuse.
func (s *TargetSet) Reset() {
	if s.List, s.index = s.List[:0], nil; cap(s.List) > setKeep {
		s.List = nil
	}
}

// Routes finds the queues of messages and remembers them by exchange and key until the
// topology changes. For one goroutine.
type Routes struct {
	vh       *VHost
	version  uint64
	by       Sender              // publishes
	known    map[string][]Target // length of the exchange's name, name, key; nil until there are two
	kept     int                 // targets in known
	lastName []byte
	last     []Target
	named    []Target // scratch: the result of toQueue
	name     []byte   // scratch
	ByTable  bool     // the result of the last Find is valid for that message alone
	Cheap    bool     // Find refuses a costly search with ErrCostly
	work     routing
}

const (
	// routesKept bounds the memory for a publisher that always uses new keys, and targetsKept
	// that for one whose messages each go to many queues.
	routesKept  = 1024
	targetsKept = 1 << 14
)

// Version is that of the topology for which the remembered routes are valid.
func (rs *Routes) Version() uint64 { return rs.version }

// Find returns the queues of a message; the slice is valid until the next call. The message's
// headers are for headers exchanges and, with keys set, for the routing keys in CC and BCC.
func (rs *Routes) Find(vh *VHost, name, key []byte, by Sender, headers Headers, keys bool) ([]Target, error) {
	rs.ByTable = false
	rs.name = append(append(append(rs.name[:0], byte(len(name))), name...), key...)
	if version := vh.version.Load(); rs.vh != vh || rs.version != version || rs.by != by {
		rs.vh, rs.version, rs.by, rs.last, rs.lastName, rs.known = vh, version, by, nil, rs.lastName[:0], nil
	}
	if !keys {
		if bytes.Equal(rs.name, rs.lastName) {
			return rs.last, nil
		}
		if known, ok := rs.known[string(rs.name)]; ok {
			rs.remember(known)
			return known, nil
		}
		if len(name) == 0 && len(rs.known) >= routesKept && !queueargs.IsSubqueue(key) {
			return rs.toQueue(key), nil
		}
	}
	targets, err := rs.search(name, key, by, headers, keys)
	if err == nil && !keys && !rs.ByTable {
		rs.keep(slices.Clone(targets))
	}
	return targets, err
}

// toQueue finds the queue of a message to the default exchange and leaves the table as it
// is: with more queues in turn than the table holds, starting it over would never give a hit.
func (rs *Routes) toQueue(key []byte) []Target {
	rs.vh.mu.RLock()
	q, ok := rs.vh.queues[string(key)]
	rs.vh.mu.RUnlock()
	rs.named = rs.named[:0]
	if ok {
		rs.named = append(rs.named, Target{Queue: q, CeilingMillis: -1})
	}
	rs.remember(rs.named)
	return rs.named
}

// keep remembers the targets for rs.name. Most publishers use a single key and need no
// table; it is made for the second key.
func (rs *Routes) keep(targets []Target) {
	if len(rs.lastName) > 0 {
		if rs.known == nil || len(rs.known) >= routesKept || rs.kept+len(targets) > targetsKept {
			rs.known = map[string][]Target{string(rs.lastName): slices.Clone(rs.last)}
			rs.kept = len(rs.last)
		}
		rs.known[string(rs.name)] = targets
		rs.kept += len(targets)
	}
	rs.remember(targets)
}

func (rs *Routes) remember(targets []Target) {
	rs.last, rs.lastName = targets, append(rs.lastName[:0], rs.name...)
}

// costlyAfter is how long the search for the queues of a message has to take to be costly.
const costlyAfter = time.Millisecond

// ErrCostly refuses a search that is not to be costly: the last one from the same exchange was.
var ErrCostly = errors.New("broker: the message is costly to route")

// search finds the queues of a message, and notes in ByTable whether the result is valid for
// others with the same key. Errors: 404 for an exchange that does not exist, 403 for an internal
// one or a dead-letter sub-queue.
func (rs *Routes) search(name, key []byte, by Sender, headers Headers, keys bool) ([]Target, error) {
	rs.vh.mu.RLock()
	defer rs.vh.mu.RUnlock()
	x, ok := rs.vh.exchanges[string(name)]
	switch {
	case !ok && len(name) > 0:
		return nil, noExchange(rs.vh.name, string(name))
	case ok && x.declared.Internal && by < ByBroker:
		return nil, amqp.NewException(amqp.AccessRefused, 60, 40, "cannot publish to internal %s", exchangeLabel(rs.vh.name, string(name)))
	}
	if ok && rs.Cheap && x.costly.Load() {
		return nil, ErrCostly
	}
	r := &rs.work
	if r.parse == nil {
		r.parse = r.headers.parse
	}
	r.out.Reset()
	*r = routing{
		vh: rs.vh, key: key, more: r.more[:0], headers: headers, parse: r.parse,
		out: r.out, through: r.through[:0], found: r.found[:0], ceiling: -1, by: by, bound: x != nil,
	}
	if keys {
		for _, header := range []string{"CC", "BCC"} {
			for _, more := range message.KeyList(r.parse()[header]) {
				r.more = append(r.more, []byte(more))
			}
		}
	}
	began := time.Now()
	r.routeLocked(x)
	if costly := time.Since(began) > costlyAfter; ok && costly != x.costly.Load() {
		x.costly.Store(costly)
	}
	rs.ByTable = r.byTable
	return r.out.List, r.refused
}

// AnyPersists reports whether a message with these flags survives a restart in any of the targets.
func AnyPersists(targets []Target, f queue.Flags) bool {
	for _, t := range targets {
		if t.Queue.Persists(f) {
			return true
		}
	}
	return false
}

// AddAll adds a message for all targets. The store keeps it if any of their queues persists it.
func AddAll(b *delivery.Batch, targets []Target, it *delivery.Item) {
	flags := it.Message.Flags
	for _, t := range targets {
		it.Bound = t.Bound
		b.AddWithFlags(&t.Queue.Queue, t.CeilingMillis, it, flags)
	}
}
