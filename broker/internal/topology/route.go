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
	"curfew/broker/policy"
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
//
// It takes as long as the exchanges and bindings on the message's way are many, and the lock is not held for all of it
// (exchange.Pace). If the topology changes meanwhile, the work begins again, a few times. After that, what changes on the way
// may be found or not, and what stays is found.
type routing struct {
	vh      *VHost
	key     []byte
	more    [][]byte // further keys (CC, BCC)
	headers Headers
	parse   func() amqp.Table // parses the headers
	pace    exchange.Pace
	out     TargetSet
	reached reached
	ahead   []way         // to exchanges that were reached and not yet passed
	capped  []*Exchange   // passed ones with a ceiling
	found   []destination // scratch of followLocked
	again   bool          // an exchange was reached by a second way
	byTable bool          // the route is not remembered: a headers exchange was passed, or one that notes its use
	by      Sender        // of the message
	refused error         // by the queue that a key names
	bound   bool          // it was sent to an exchange other than the default one
}

// way leads to an exchange.
type way struct {
	to            *Exchange
	ceilingMillis int64 // of the exchanges on it; <0 none
}

// begin empties the scratch memory, and gives it up if it is much.
func (r *routing) begin() {
	r.out.Reset()
	r.reached.reset()
	r.ahead, r.capped, r.found = emptied(r.ahead), emptied(r.capped), emptied(r.found)
	r.again, r.byTable, r.refused = false, false, nil
}

func emptied[T any](list []T) []T {
	if cap(list) > setKeep {
		return nil
	}
	clear(list)
	return list[:0]
}

// routeLocked adds the queues that x sends the message to, each once and with the lowest ceiling
// of all ways to it; nil is the default exchange. Called with vh.mu held for reading, as all
// that it calls.
func (r *routing) routeLocked(x *Exchange) {
	if x != nil {
		r.fromLocked(x)
		if r.again {
			r.lowerLocked()
		}
		return
	}
	r.toQueueLocked(r.key)
	for _, key := range r.more {
		r.pace.Step(1)
		r.toQueueLocked(key)
	}
}

// toQueueLocked sends the message to the queue of that name, as the default exchange does.
func (r *routing) toQueueLocked(name []byte) {
	q, ok := r.vh.Queues.queues[string(name)]
	if !ok {
		q, ok = r.vh.Queues.queues[policy.Canonical(string(name))]
	}
	if !ok {
		return
	}
	if q.Arguments.Keeps {
		r.refuse(q)
	}
	r.out.add(Target{q, -1, r.bound})
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

// fromLocked sends the message through x and all exchanges that it leads to, each once.
func (r *routing) fromLocked(x *Exchange) {
	r.reach(way{x, -1})
	for n := len(r.ahead); n > 0; n = len(r.ahead) {
		w := r.ahead[n-1]
		r.ahead = r.ahead[:n-1]
		r.passLocked(w)
	}
}

func (r *routing) reach(w way) {
	if r.reached.first(w.to) {
		r.ahead = append(r.ahead, w)
	} else {
		r.again = true
	}
}

// passLocked sends the message with all its keys through an exchange. If that has no binding for any of
// the keys, it goes to the alternate exchange (RabbitMQ: Alternate Exchanges).
func (r *routing) passLocked(w way) {
	x := w.to
	if x.ttlMillis >= 0 {
		w.ceilingMillis = policy.LowerTTL(w.ceilingMillis, x.ttlMillis)
		r.capped = append(r.capped, x)
	}
	r.byTable = r.byTable || x.kind == exchange.Headers
	if x.idleMillis != 0 {
		r.byTable = true
		if r.by != ByNobody {
			x.lastUsedAt.Store(int64(r.vh.registry.env.Clock.Now()))
		}
	}
	bound := r.followLocked(w, r.key)
	if x.kind == exchange.Direct || x.kind == exchange.Topic { // others ignore keys
		for _, key := range r.more {
			bound = r.followLocked(w, key) || bound
		}
	}
	if !bound && x.alternate != "" {
		if alternate, ok := r.vh.Exchanges.exchanges[x.alternate]; ok { // a missing one is ignored
			w.to = alternate
			r.reach(w)
		}
	}
}

// followLocked sends the message along the bindings of an exchange for one of its keys. It returns
// false if there are none.
func (r *routing) followLocked(w way, key []byte) (bound bool) {
	r.pace.Step(1)
	r.found = w.to.router.Route(key, r.parse, r.found[:0], &r.pace)
	for _, d := range r.found {
		r.pace.Step(1)
		switch w.to = d.exchange; {
		case d.goneLocked():
			continue
		case d.queue != nil:
			r.out.add(Target{d.queue, w.ceilingMillis, r.bound})
		default:
			r.reach(w)
		}
		bound = true
	}
	return bound
}

// lowerLocked applies the ceilings of those ways that were not taken because they join others. An
// exchange's ceiling applies to everything behind it: with the lowest first, each exchange is passed at
// most once more.
func (r *routing) lowerLocked() {
	capped := r.capped
	r.capped = nil
	slices.SortStableFunc(capped, func(a, b *Exchange) int { return cmp.Compare(a.ttlMillis, b.ttlMillis) })
	r.reached.reset()
	for _, x := range capped {
		r.fromLocked(x)
	}
	r.reached.reset()
}

// reached are the exchanges that a message has reached: a few are in a list, and all are in many once there are more.
type reached struct {
	few  []*Exchange
	many map[*Exchange]struct{} // empty while there are few
}

// reachedFew is how many exchanges are searched one by one.
const reachedFew = 16

// first notes x, and reports whether it is reached for the first time.
func (r *reached) first(x *Exchange) bool {
	if len(r.many) > 0 {
		before := len(r.many)
		r.many[x] = struct{}{}
		return len(r.many) > before
	}
	if slices.Contains(r.few, x) {
		return false
	}
	if r.few = append(r.few, x); len(r.few) > reachedFew {
		if r.many == nil {
			r.many = map[*Exchange]struct{}{}
		}
		for _, one := range r.few {
			r.many[one] = struct{}{}
		}
	}
	return true
}

// reset empties it, and gives memory up if it is much.
func (r *reached) reset() {
	clear(r.few)
	r.few = r.few[:0]
	if len(r.many) > setKeep {
		r.many = nil
	}
	clear(r.many)
}

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
		have.CeilingMillis = policy.LowerTTL(have.CeilingMillis, t.CeilingMillis)
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
	by       Sender           // publishes
	known    map[string]route // length of the exchange's name, name, key; nil until there are two
	kept     int              // targets in known
	lastName []byte
	last     route
	named    []Target       // scratch: the result of toQueue
	name     []byte         // scratch
	Stats    *ExchangeStats // of the exchange of the last Find
	ByTable  bool           // the result of the last Find is valid for that message alone
	Cheap    bool           // Find refuses a costly search with ErrCostly
	work     routing
}

// route is what is remembered of an exchange and a key.
type route struct {
	targets []Target
	stats   *ExchangeStats
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
		rs.vh, rs.version, rs.by, rs.last, rs.lastName, rs.known = vh, version, by, route{}, rs.lastName[:0], nil
	}
	if !keys {
		if bytes.Equal(rs.name, rs.lastName) {
			rs.Stats = rs.last.stats
			return rs.last.targets, nil
		}
		if known, ok := rs.known[string(rs.name)]; ok {
			rs.Stats = known.stats
			rs.remember(known)
			return known.targets, nil
		}
		if len(name) == 0 && len(rs.known) >= routesKept && !policy.IsSubqueue(key) {
			return rs.toQueue(key), nil
		}
	}
	targets, err := rs.search(name, key, by, headers, keys)
	if err == nil && !keys && !rs.ByTable {
		rs.keep(route{slices.Clone(targets), rs.Stats})
	}
	return targets, err
}

// toQueue finds the queue of a message to the default exchange and leaves the table as it
// is: with more queues in turn than the table holds, starting it over would never give a hit.
func (rs *Routes) toQueue(key []byte) []Target {
	rs.vh.guard.mu.RLock()
	q, ok := rs.vh.Queues.queues[string(key)]
	rs.vh.guard.mu.RUnlock()
	rs.named, rs.Stats = rs.named[:0], &rs.vh.Exchanges.defaultExchange.stats
	if ok {
		rs.named = append(rs.named, Target{Queue: q, CeilingMillis: -1})
	}
	rs.remember(route{rs.named, rs.Stats})
	return rs.named
}

// keep remembers the targets for rs.name. Most publishers use a single key and need no
// table; it is made for the second key.
func (rs *Routes) keep(r route) {
	if len(rs.lastName) > 0 {
		if rs.known == nil || len(rs.known) >= routesKept || rs.kept+len(r.targets) > targetsKept {
			rs.known = map[string]route{string(rs.lastName): {slices.Clone(rs.last.targets), rs.last.stats}}
			rs.kept = len(rs.last.targets)
		}
		rs.known[string(rs.name)] = r
		rs.kept += len(r.targets)
	}
	rs.remember(r)
}

func (rs *Routes) remember(r route) {
	rs.last, rs.lastName = r, append(rs.lastName[:0], rs.name...)
}

// costlyAfter is how long the search for the queues of a message has to take to be costly.
const costlyAfter = time.Millisecond

// ErrCostly refuses a search that is not to be costly: the last one from the same exchange was.
var ErrCostly = errors.New("broker: the message is costly to route")

// search finds the queues of a message, and notes in ByTable whether the result is valid for
// others with the same key. Errors: 404 for an exchange that does not exist, 403 for an internal
// one or a dead-letter sub-queue.
func (rs *Routes) search(name, key []byte, by Sender, headers Headers, keys bool) ([]Target, error) {
	r := &rs.work
	if r.parse == nil {
		r.parse, r.pace.Pause = r.headers.parse, func() { r.vh.guard.pause() }
	}
	r.vh, r.key, r.more, r.headers, r.by = rs.vh, key, emptied(r.more), headers, by
	if keys {
		for _, more := range message.FurtherKeys(r.parse()) {
			r.more = append(r.more, []byte(more))
		}
	}
	rs.vh.guard.mu.RLock()
	defer rs.vh.guard.mu.RUnlock()
	for try := 1; ; try++ {
		x, ok := rs.vh.Exchanges.exchanges[string(name)]
		switch {
		case !ok && len(name) > 0:
			return nil, noExchange(rs.vh.guard.name, string(name))
		case ok && x.declared.Internal && by < ByBroker:
			return nil, amqp.NewException(amqp.AccessRefused, 60, 40, "cannot publish to internal %s", exchangeLabel(rs.vh.guard.name, string(name)))
		}
		if rs.Stats = &rs.vh.Exchanges.defaultExchange.stats; ok {
			rs.Stats = &x.stats
		}
		if ok && rs.Cheap && x.costly.Load() {
			return nil, ErrCostly
		}
		version, began := rs.vh.version.Load(), time.Now()
		r.begin()
		r.bound = x != nil
		r.routeLocked(x)
		if costly := time.Since(began) > costlyAfter; ok && costly != x.costly.Load() {
			x.costly.Store(costly)
		}
		r.reached.reset()
		if try == routeTries || rs.vh.version.Load() == version {
			rs.ByTable = r.byTable
			return r.out.List, r.refused
		}
	}
}

// routeTries is how often a route is looked for that is overtaken by changes of the topology.
const routeTries = 3

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
	flags, own, named := it.Message.Flags, it.Message.ExpiresAt, it.Named
	it.Named = nil // a batch keeps its items' memory
	for _, t := range targets {
		it.Bound, it.Message.ExpiresAt = t.Bound, named.Earlier(own, t.Queue.Settings())
		b.AddWithFlags(&t.Queue.Messages, t.CeilingMillis, it, flags)
	}
	it.Message.ExpiresAt, it.Named = own, named
}
