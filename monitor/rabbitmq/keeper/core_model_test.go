package keeper

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"

	"github.com/stretchr/testify/require"
)

// modelMessage is a message in the naive model.
type modelMessage struct {
	id          int
	fingerprint uint64
	ttl         time.Duration    // negative is none
	expires     deadline.Instant // never if it has no TTL
	redelivered bool
	returns     int
	place       int // order of publishing
}

// modelChannel is a channel of the keeper's.
type modelChannel struct {
	unacked  []*modelMessage // by tag; nil is settled
	firstTag uint64
	prefetch int                      // of the consumer; 0 is none
	counts   []map[*modelMessage]bool // unacked, by consumer; the last may be there still
	stays    map[int]bool             // consumers that are back
	emptied  bool                     // what it had unacked is gone with its queue
}

// model is a queue of RabbitMQ as its documents describe it: expired messages leave at the head only, and before
// anything is delivered.
type model struct {
	t          *testing.T
	quorum     bool
	limit      int // delivery limit; 0 is none
	returned   []*modelMessage
	ready      []*modelMessage
	channels   map[uint32]*modelChannel
	app        []*modelMessage // unacked at the application
	appHere    bool
	leftBehind int                  // consumers of lost nodes that are still counted
	silent     func() bool          // whether the leader of a quorum queue does not answer a look
	slow       func() time.Duration // how long a quorum queue goes on counting a cancelled consumer that has given back all
	lingering  []deadline.Instant   // until when it counts them
	expired    map[int]deadline.Instant
	killed     map[int]bool // by the delivery limit
	consumed   map[int]bool
	places     int
	now        deadline.Instant
	out        []func(c *core) // inputs for the core, in order
}

func (m *model) publish(fingerprint uint64, ttl time.Duration) *modelMessage {
	m.places++
	msg := &modelMessage{id: m.places, fingerprint: fingerprint, ttl: ttl, expires: never, place: m.places}
	if ttl >= 0 {
		msg.expires = m.now.Add(ttl)
	}
	m.ready = append(m.ready, msg)
	return msg
}

// giveBack puts it back: a classic queue at its place, a quorum queue behind what was returned before.
func (m *model) giveBack(msg *modelMessage) {
	msg.redelivered = true
	msg.returns++
	if m.quorum && m.limit > 0 && msg.returns > m.limit {
		m.killed[msg.id] = true
		return
	}
	m.returned = append(m.returned, msg)
	if !m.quorum {
		slices.SortFunc(m.returned, func(a, b *modelMessage) int { return a.place - b.place })
	}
}

// head is the first ready message that has not expired; those before it leave.
func (m *model) head() *modelMessage {
	for _, list := range []*[]*modelMessage{&m.returned, &m.ready} {
		for len(*list) > 0 {
			msg := (*list)[0]
			if msg.expires > m.now {
				return msg
			}
			*list = (*list)[1:]
			_, twice := m.expired[msg.id]
			require.False(m.t, twice)
			m.expired[msg.id] = m.now
		}
	}
	return nil
}

func (m *model) pop() {
	if len(m.returned) > 0 {
		m.returned = m.returned[1:]
	} else {
		m.ready = m.ready[1:]
	}
}

// run delivers what can be delivered: to the application first.
func (m *model) run() {
	for {
		msg := m.head()
		if msg == nil {
			return
		}
		if m.appHere && len(m.app) < 2 {
			m.pop()
			m.app = append(m.app, msg)
			continue
		}
		var to uint32
		for id, ch := range m.channels {
			if ch.prefetch > 0 && ch.prefetch > len(ch.counts[len(ch.counts)-1]) && to == 0 {
				to = id
			}
		}
		if to == 0 {
			return
		}
		m.pop()
		m.deliver(to, m.channels[to], msg)
	}
}

func (m *model) deliver(id uint32, ch *modelChannel, msg *modelMessage) {
	tag, in := m.add(ch, len(ch.counts)-1, msg)
	m.out = append(m.out, func(c *core) { c.deliver(m.now, id, tag, in) })
}

// add notes a delivery to one of the channel's consumers.
func (m *model) add(ch *modelChannel, consumer int, msg *modelMessage) (tag uint64, in message) {
	ch.unacked = append(ch.unacked, msg)
	ch.counts[consumer][msg] = true
	tag = ch.firstTag + uint64(len(ch.unacked)) - 1
	return tag, message{fingerprint: msg.fingerprint, ttl: msg.ttl, redelivered: msg.redelivered, returns: msg.returns, size: 1}
}

func (m *model) total() int { return len(m.ready) + len(m.returned) }

func (m *model) consumers() (n int) {
	for _, ch := range m.channels {
		if ch.prefetch > 0 {
			n++
		}
		for i, unacked := range ch.counts {
			if m.quorum && (len(unacked) > 0 || ch.stays[i]) && (i < len(ch.counts)-1 || ch.prefetch == 0) {
				n++
			}
		}
	}
	if m.appHere {
		n++
	}
	m.lingering = slices.DeleteFunc(m.lingering, func(until deadline.Instant) bool { return until <= m.now })
	return n + m.leftBehind + len(m.lingering)
}

// gaveBack notes that a consumer of the channel has given a message back.
func (m *model) gaveBack(ch *modelChannel, consumer int) {
	live := consumer == len(ch.counts)-1 && ch.prefetch > 0
	if m.slow != nil && !live && !ch.stays[consumer] && len(ch.counts[consumer]) == 0 {
		m.lingering = append(m.lingering, m.now.Add(m.slow()))
	}
}

func (m *model) do(cmd command, exact bool, c *core) {
	ch := m.channels[cmd.stretch]
	switch cmd.do {
	case consume:
		if ch == nil {
			ch = &modelChannel{firstTag: 1, stays: map[int]bool{}}
			m.channels[cmd.stretch] = ch
		}
		require.Positive(m.t, cmd.prefetch)
		for _, other := range m.channels {
			require.Zero(m.t, other.prefetch, "two consumers at once")
		}
		ch.prefetch, ch.counts = cmd.prefetch, append(ch.counts, map[*modelMessage]bool{})
		m.out = append(m.out, func(c *core) { c.opened(m.now, cmd.stretch) })
	case cancel:
		if ch != nil {
			ch.prefetch = 0
			m.out = append(m.out, func(c *core) { c.ended(m.now, cmd.stretch) })
		}
	case giveBack:
		if ch == nil {
			return
		}
		msg := ch.unacked[cmd.tag-ch.firstTag]
		if msg == nil && ch.emptied {
			return
		}
		require.NotNil(m.t, msg, "given back twice")
		ch.unacked[cmd.tag-ch.firstTag] = nil
		for i, unacked := range ch.counts {
			if unacked[msg] {
				delete(unacked, msg)
				m.gaveBack(ch, i)
			}
		}
		if exact && m.now < msg.expires {
			require.True(m.t, c.counts.UnknownAge > 0 || c.counts.Rolls > 0, "message %d given back %v early", msg.id, msg.expires.Sub(m.now))
		}
		m.giveBack(msg)
	case giveBackTo, giveBackAll:
		if ch == nil {
			return
		}
		m.giveBackMany(ch, cmd)
		if cmd.do == giveBackAll {
			m.out = append(m.out, func(c *core) { c.returned(m.now, cmd.stretch) })
		}
	case settle:
		if ch != nil {
			m.out = append(m.out, func(c *core) { c.settled(m.now, cmd.stretch) })
		}
	case replace:
		if ch != nil {
			require.True(m.t, cmd.consumption == len(ch.counts)-1 && len(ch.counts[cmd.consumption]) == ch.prefetch)
			ch.prefetch, ch.stays[cmd.consumption] = 0, true
			m.out = append(m.out, func(c *core) { c.ended(m.now, cmd.stretch) })
		}
	case stay:
		if ch != nil {
			require.True(m.t, m.quorum && (cmd.consumption < len(ch.counts)-1 || ch.prefetch == 0) && !ch.stays[cmd.consumption])
			ch.stays[cmd.consumption] = true
		}
	case leave:
		if ch != nil {
			require.True(m.t, ch.stays[cmd.consumption])
			delete(ch.stays, cmd.consumption)
		}
	case drop:
		if ch != nil {
			m.loseChannel(cmd.stretch)
		}
	case look:
		m.head()
		ready, consumers, epoch := m.total(), m.consumers(), cmd.epoch
		if m.silent != nil && m.silent() {
			ready, consumers = 0, 0
		}
		m.out = append(m.out, func(c *core) { c.looked(m.now, epoch, ready, consumers, other, "", true) })
	}
	m.run()
}

// giveBackMany is nack with multiple. A quorum queue takes the messages of each consumer back as one, in any order of consumers.
func (m *model) giveBackMany(ch *modelChannel, cmd command) {
	var groups [][]*modelMessage
	if m.quorum {
		groups = make([][]*modelMessage, len(ch.counts))
	} else {
		groups = make([][]*modelMessage, 1)
	}
	for i, msg := range ch.unacked {
		if msg == nil || cmd.do == giveBackTo && ch.firstTag+uint64(i) > cmd.tag {
			continue
		}
		ch.unacked[i] = nil
		group := 0
		for at, unacked := range ch.counts {
			if !unacked[msg] {
				continue
			}
			if m.quorum {
				group = len(ch.counts) - 1 - at
			}
			delete(unacked, msg)
			m.gaveBack(ch, at)
		}
		groups[group] = append(groups[group], msg)
	}
	for _, group := range groups {
		for _, msg := range group {
			m.giveBack(msg)
		}
	}
}

func (m *model) loseChannel(id uint32) {
	for _, msg := range m.channels[id].unacked {
		if msg != nil {
			m.giveBack(msg)
		}
	}
	delete(m.channels, id)
}

// declareAgain deletes the queue, and declares it again at once.
func (m *model) declareAgain() {
	m.ready, m.returned, m.lingering = nil, nil, nil
	for id, ch := range m.channels {
		for i := range ch.counts {
			ch.counts[i] = map[*modelMessage]bool{}
		}
		clear(ch.unacked)
		clear(ch.stays)
		if ch.emptied = true; ch.prefetch > 0 {
			ch.prefetch = 0
			m.out = append(m.out, func(c *core) { c.ended(m.now, id) })
		}
	}
}

func (m *model) loseConnection() {
	ids := []uint32{}
	for id := range m.channels {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		m.loseChannel(id)
	}
	m.out = nil
}

// sim drives a core against the model, with delays on both ways.
type sim struct {
	t        *testing.T
	c        *core
	m        *model
	r        *rand.Rand
	commands []command
	exact    bool
	facts    Facts
	idle     int
}

func newSim(t *testing.T, seed uint64, f Facts, cfg config) *sim {
	s := &sim{t: t, r: rand.New(rand.NewPCG(seed, 1)), facts: f}
	s.m = &model{t: t, quorum: f.Type == cluster.Quorum, limit: f.DeliveryLimit, channels: map[uint32]*modelChannel{},
		expired: map[int]deadline.Instant{}, killed: map[int]bool{}, consumed: map[int]bool{}, now: 1_000_000_000}
	s.c = newCore(cfg, s.m.now)
	return s
}

func testConfig() config {
	return config{perChannel: 8, limit: 100_000, bytesLimit: 1 << 40, endlessMost: 1}
}

func plainFacts(t cluster.QueueType) Facts {
	return Facts{Type: t, Family: cluster.Family3, TTL: -1, ConsumerTimeout: 10 * time.Minute}
}

// kinds are facts of queues that are kept in different ways.
func kinds() []Facts {
	kinds := []Facts{plainFacts(cluster.Classic), plainFacts(cluster.Quorum), plainFacts(cluster.Quorum), plainFacts(cluster.Quorum)}
	kinds[2].Family, kinds[3].Family = cluster.Family40, cluster.Family43
	return kinds
}

func (f Facts) String() string {
	return fmt.Sprint(f.Type, " ", f.Family)
}

// input hands one input to the core and takes its commands.
func (s *sim) input(fn func(c *core)) {
	fn(s.c)
	s.commands = append(s.commands, s.c.line.out...)
	s.c.line.out = s.c.line.out[:0]
	s.c.fresh = s.c.fresh[:0]
	s.check()
}

// check holds the core's invariants.
func (s *sim) check() {
	c := s.c
	must := func(ok bool, what string) {
		if !ok {
			s.t.Fatal("invariant: " + what)
		}
	}
	must(c.given.settled <= len(c.given.leaving), "settled")
	must(len(c.line.byID) == len(c.line.stretches), "stretches by id")
	total := 0
	for i, seg := range c.line.stretches {
		must(i == 0 || c.line.stretches[i-1].key < seg.key, "stretches in order of key")
		must(c.line.byID[seg.id] == seg, "stretch by id")
		must(seg.phase == sealed || seg.phase == returning || seg == c.line.consumer, "consumers")
		n, tag := 0, uint64(0)
		for e := seg.first; e != none; e = c.line.held.entries[e].next {
			must(c.line.held.entries[e].stretch == seg.id && c.line.held.entries[e].tag > tag, "entries by tag")
			tag = c.line.held.entries[e].tag
			n++
		}
		must(seg.held == n, "held of a stretch")
		total += n
	}
	must(total == c.line.held.count, "every entry is in one stretch")
	for i, e := range c.line.held.due.Items {
		must(c.line.held.entries[e].position == uint32(i), "position")
		must(i == 0 || c.line.held.entries[c.line.held.due.Items[(i-1)/2]].due <= c.line.held.entries[e].due, "heap")
	}
}

// work carries out a few commands and hands over a few inputs.
func (s *sim) work(n int) {
	for range n {
		if len(s.commands) > 0 && (len(s.m.out) == 0 || s.r.IntN(2) == 0) {
			cmd := s.commands[0]
			s.commands = s.commands[1:]
			if cmd.do == learn {
				s.learn()
			} else {
				s.m.do(cmd, s.exact, s.c)
			}
		} else if len(s.m.out) > 0 {
			in := s.m.out[0]
			s.m.out = s.m.out[1:]
			s.input(in)
		} else {
			return
		}
	}
}

// learn hands the facts over.
func (s *sim) learn() {
	facts := s.facts
	s.m.out = append(s.m.out, func(c *core) { c.setFacts(s.m.now, facts) })
}

// within is a random span below d.
func (s *sim) within(d time.Duration) time.Duration { return time.Duration(s.r.Int64N(int64(d))) }

// pass lets time pass, with ticks at the instants the core asks for.
func (s *sim) pass(d time.Duration) {
	end := s.m.now.Add(d)
	s.m.run()
	for s.m.now < end {
		s.m.now = max(s.m.now+1, min(end, s.c.wake(), s.m.now.Add(max(time.Microsecond, s.within(2*time.Millisecond)))))
		if len(s.commands)+len(s.m.out) == 0 {
			s.m.now = max(s.m.now, min(end, s.c.wake()))
		}
		s.m.head()
		s.m.run()
		s.work(1 + s.r.IntN(20))
		if s.m.now >= s.c.wake() {
			s.input(func(c *core) { c.tick(s.m.now) })
			if s.c.wake() <= s.m.now {
				if s.idle++; s.idle > 100 {
					s.t.Fatalf("the core spins: %+v", s.c.status())
				}
			} else {
				s.idle = 0
			}
		}
	}
}

func (s *sim) connect() { s.input(func(c *core) { c.connect(s.m.now, s.facts) }) }

// loseNode takes the node of the connection down. A quorum queue goes on counting its consumers.
func (s *sim) loseNode() {
	if s.m.quorum {
		s.m.leftBehind = s.m.consumers()
	}
	s.disconnect()
	if s.m.quorum {
		for _, msg := range s.m.returned {
			msg.redelivered = false
		}
	}
}

func (s *sim) disconnect() {
	s.m.loseConnection()
	s.commands = nil
	s.input(func(c *core) { c.disconnect(s.m.now, "connection lost") })
}

// order is the queue's content by place of publishing.
func (s *sim) order() (places []int) {
	for _, msg := range append(slices.Clone(s.m.returned), s.m.ready...) {
		places = append(places, msg.place)
	}
	return places
}

func TestMixedTTLsExpireInTimeAndTheRestStaysInOrder(t *testing.T) {
	for _, f := range kinds() {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(f, seed), func(t *testing.T) {
				s := newSim(t, seed, f, testConfig())
				s.exact = true
				s.connect()
				s.pass(time.Second)
				require.Equal(t, Keeping, s.c.state)
				s.m.publish(1, time.Hour)
				var messages []*modelMessage
				for i := range 500 {
					ttl := time.Duration(s.r.IntN(20_000)) * time.Millisecond
					if s.r.IntN(4) == 0 {
						ttl = time.Hour
					}
					messages = append(messages, s.m.publish(uint64(i+2), ttl))
					s.pass(s.within(5 * time.Millisecond))
				}
				s.pass(30 * time.Second)
				for _, msg := range messages {
					if msg.ttl < time.Hour {
						require.Contains(t, s.m.expired, msg.id)
						require.Less(t, s.m.expired[msg.id].Sub(msg.expires), 200*time.Millisecond)
					} else {
						require.NotContains(t, s.m.expired, msg.id)
					}
				}
				require.Zero(t, s.c.counts.Early)
				require.Equal(t, s.c.seen.Messages, s.c.seen.Expiring)
				require.Equal(t, s.c.counts.Expired, uint64(len(s.c.given.expired)))
				held := s.c.line.held.count
				s.m.appHere = false
				s.input(func(c *core) { c.consumerSeen(s.m.now) })
				s.pass(time.Second)
				require.Equal(t, StandingAside, s.c.state)
				require.Equal(t, held, s.m.total())
				require.True(t, slices.IsSorted(s.order()), "%v", s.order())
				s.pass(12 * time.Second)
				require.Equal(t, Keeping, s.c.state)
				require.Equal(t, held, s.c.line.held.count)
				s.input(func(c *core) { c.stop(s.m.now, stopped) })
				s.pass(time.Second)
				require.Equal(t, Stopped, s.c.state)
				require.Equal(t, held, s.m.total())
				require.True(t, slices.IsSorted(s.order()))
			})
		}
	}
}

// TestGenerationsKeepTheOrder rolls stretches again and again while messages come.
func TestGenerationsKeepTheOrder(t *testing.T) {
	for _, f := range kinds()[:3] {
		for seed := range uint64(5) {
			t.Run(fmt.Sprint(f, seed), func(t *testing.T) {
				f.ConsumerTimeout = 20 * time.Second
				s := newSim(t, seed, f, testConfig())
				s.connect()
				s.pass(time.Second)
				for i := range 400 {
					ttl := time.Hour
					if s.r.IntN(2) == 0 {
						ttl = time.Duration(s.r.IntN(60_000)) * time.Millisecond
					}
					s.m.publish(uint64(i), ttl)
					s.pass(s.within(150 * time.Millisecond))
				}
				s.pass(30 * time.Second)
				require.Positive(t, s.c.counts.Rolls)
				now := s.m.now.Sub(s.c.line.started) / time.Second
				for _, e := range s.c.line.held.entries {
					if e.tag != 0 {
						require.LessOrEqual(t, int64(now)-int64(e.taken), int64(14), "held too long")
					}
				}
				s.input(func(c *core) { c.stop(s.m.now, stopped) })
				s.pass(time.Second)
				require.True(t, slices.IsSorted(s.order()), "%v", s.order())
				require.Len(t, s.m.expired, 400-s.m.total())
			})
		}
	}
}

// TestBacklogOfUnknownAge: what was there before is given back in steps, and is at most a step late.
func TestBacklogOfUnknownAge(t *testing.T) {
	s := newSim(t, 1, plainFacts(cluster.Classic), testConfig())
	s.m.publish(1, time.Hour)
	var messages []*modelMessage
	for i := range 100 {
		messages = append(messages, s.m.publish(uint64(i+2), 60*time.Second))
		s.m.now = s.m.now.Add(300 * time.Millisecond)
	}
	s.connect()
	s.pass(70 * time.Second)
	for _, msg := range messages {
		require.Contains(t, s.m.expired, msg.id)
		require.Less(t, s.m.expired[msg.id].Sub(msg.expires), 60*time.Second/20+leastProbe+time.Second)
	}
	require.EqualValues(t, 101, s.c.counts.UnknownAge)
}

func TestTakesAreNotSpentBeyondAQuarterOfTheDeliveryLimit(t *testing.T) {
	for _, limit := range []int{5, 20} {
		f := plainFacts(cluster.Quorum)
		f.DeliveryLimit, f.ConsumerTimeout = limit, 4*time.Second
		s := newSim(t, 1, f, testConfig())
		s.connect()
		s.pass(time.Second)
		for i := range 20 {
			s.m.publish(uint64(i), time.Hour)
		}
		s.pass(5 * time.Minute)
		require.Equal(t, Refused, s.c.state)
		require.Contains(t, s.c.reason.text, "delivery limit")
		require.Empty(t, s.m.killed)
		for _, msg := range append(s.m.returned, s.m.ready...) {
			require.LessOrEqual(t, msg.returns, limit/4+2)
		}
		s.pass(time.Minute)
		require.Equal(t, Refused, s.c.state)
		s.facts.DeliveryLimit = 4 * limit
		s.learn()
		s.pass(2 * time.Second)
		require.Equal(t, Keeping, s.c.state, "an operator has raised it")
	}
}

// TestProbesLeaveAReturn: a message of unknown age between others of other TTLs is given back with each of them. That ends before the queue
// would have to be refused, and a takeover is still possible.
func TestProbesLeaveAReturn(t *testing.T) {
	f := plainFacts(cluster.Quorum)
	f.Family, f.DeliveryLimit = cluster.Family40, 20
	s := newSim(t, 1, f, testConfig())
	s.m.publish(1, time.Hour)
	for i := range 7 {
		s.m.publish(uint64(i+2), time.Duration(4+i)*time.Second)
	}
	s.connect()
	s.pass(time.Minute)
	require.Equal(t, Keeping, s.c.state, s.c.reason.text)
	require.Greater(t, s.c.counts.Rolls, uint64(1))
	require.Len(t, s.m.expired, 7)
	for _, m := range s.m.channels {
		for _, held := range m.unacked {
			require.True(t, held == nil || held.returns < f.takes(), "%+v", held)
		}
	}
}

// TestRandom: whatever happens, every message is in the queue, at the keeper or has left for a reason, none expires twice,
// and when it is quiet again all that is due expires.
func TestRandom(t *testing.T) {
	for seed := range uint64(seeds(t)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { random(t, seed) })
	}
}

// seeds is how many random histories are run: KEEPER_SEEDS, or 12.
func seeds(t *testing.T) int {
	text := os.Getenv("KEEPER_SEEDS")
	if text == "" {
		return 12
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func random(t *testing.T, seed uint64) {
	f := kinds()[seed%4]
	f.ConsumerTimeout = []time.Duration{0, 20 * time.Second, time.Minute}[seed%3]
	s := newSim(t, seed, f, testConfig())
	var messages []*modelMessage
	s.connect()
	equal := seed%7 == 0
	for range 600 {
		switch n := s.r.IntN(100); {
		case n < 50:
			for range s.r.IntN(6) {
				ttl := time.Duration(s.r.IntN(30_000)) * time.Millisecond
				fingerprint := uint64(len(messages)) + 10
				if equal {
					ttl, fingerprint = 3*time.Second, 7
				}
				if s.r.IntN(10) == 0 {
					ttl, fingerprint = -1, uint64(len(messages))+10
				}
				messages = append(messages, s.m.publish(fingerprint, ttl))
			}
		case n < 54:
			s.m.appHere = !s.m.appHere
			if s.m.appHere && s.r.IntN(2) == 0 {
				s.input(func(c *core) { c.consumerSeen(s.m.now) })
			}
		case n < 60:
			for _, msg := range s.m.app {
				if s.r.IntN(2) == 0 {
					s.m.giveBack(msg)
				} else {
					s.m.consumed[msg.id] = true
				}
			}
			s.m.app = nil
		case n < 63:
			for id := range s.m.channels {
				s.m.loseChannel(id)
				s.m.out = append(s.m.out, func(c *core) { c.lost(s.m.now, id, other, "channel closed") })
				break
			}
		case n < 65:
			s.disconnect()
			s.pass(s.within(time.Second))
			s.connect()
		case n < 66:
			s.input(func(c *core) { c.refusal.readyBelow = math.MaxInt })
		case n < 67:
			for id := range s.m.channels {
				s.input(func(c *core) { c.stray(s.m.now, id) })
				break
			}
		default:
			s.pass(s.within(time.Second))
		}
	}
	s.m.appHere = false
	for _, msg := range s.m.app {
		s.m.giveBack(msg)
	}
	s.m.app = nil
	s.m.run()
	s.pass(20 * time.Minute)
	s.input(func(c *core) { c.refusal.readyBelow = math.MaxInt })
	s.pass(5 * time.Minute)
	require.Equal(t, Keeping, s.c.state, "%s", s.c.reason.text)
	endless := 0
	for _, msg := range messages {
		_, expired := s.m.expired[msg.id]
		require.True(t, msg.ttl < 0 || expired || s.m.consumed[msg.id], "message %d with TTL %v has not left, state %v", msg.id, msg.ttl, s.c.state)
		if msg.ttl < 0 && !s.m.consumed[msg.id] {
			endless++
		}
	}
	s.input(func(c *core) { c.stop(s.m.now, stopped) })
	s.pass(10 * time.Second)
	require.Equal(t, Stopped, s.c.state)
	require.Equal(t, endless, s.m.total())
	require.Zero(t, s.c.line.held.count)
	require.Empty(t, s.m.channels)
}
