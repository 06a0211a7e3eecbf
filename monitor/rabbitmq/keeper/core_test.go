package keeper

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// TestOtherFactsEndARefusal: a delivery limit that is raised, for example.
func TestOtherFactsEndARefusal(t *testing.T) {
	facts := plainFacts(cluster.Quorum)
	c := newCore(testConfig(), 1)
	c.connect(1, facts)
	c.refuse(2, refusal{reason: reason{DeliveryLimit, "a quarter is spent"}, readyBelow: 1})
	c.setFacts(3, facts)
	require.Equal(t, Refused, c.state)
	facts.DeliveryLimit = 100
	c.setFacts(4, facts)
	require.Equal(t, Observing, c.state)
}

func TestVersionsDiffer(t *testing.T) {
	for _, c := range []struct {
		facts  Facts
		counts bool
		takes  int
		hold   time.Duration
		share  float64
	}{
		{Facts{Type: cluster.Classic, Family: cluster.Family3}, false, -1, 15 * time.Minute, 0.05},
		{Facts{Type: cluster.Quorum, Family: cluster.Family3}, true, -1, 15 * time.Minute, 0.05},
		{Facts{Type: cluster.Quorum, Family: cluster.Family3, DeliveryLimit: 5, ConsumerTimeout: time.Minute}, true, 1, 30 * time.Second, 0},
		{Facts{Type: cluster.Quorum, Family: cluster.Family40, DeliveryLimit: 20}, true, 5, 15 * time.Minute, 0.2},
		{Facts{Type: cluster.Quorum, Family: cluster.Family43, DeliveryLimit: 20}, false, 5, 12 * time.Hour, 0.05},
		{Facts{Type: cluster.Classic, Family: cluster.Family43}, false, -1, 0, 0.05},
	} {
		require.Equal(t, c.counts, c.facts.returnsCount())
		require.Equal(t, c.takes, c.facts.takes())
		require.Equal(t, c.hold, c.facts.HoldLimit())
		require.InDelta(t, c.share, c.facts.probeShare(), 1e-9)
	}
}

func TestAHeldMessageCosts68Bytes(t *testing.T) {
	require.EqualValues(t, 64, unsafe.Sizeof(entry{})) // and 4 in the heap
}

func TestHeapGivesTheEarliestFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h heldMessages
	var in []uint32
	for range 5000 {
		if len(in) > 0 && r.IntN(3) == 0 {
			at := r.IntN(len(in))
			h.remove(in[at])
			in = slices.Delete(in, at, at+1)
		} else {
			in = append(in, h.add(entry{due: deadline.Instant(r.Int64N(1000)), size: 1}))
		}
		require.Equal(t, len(in), h.count)
		require.EqualValues(t, len(in), h.bytes)
		least := never
		for _, i := range in {
			least = min(least, h.entries[i].due)
		}
		require.Equal(t, least, h.nextDue())
	}
}

// TestEarlyReturnsExpireOnce: a message that comes back early and is given back again has expired once.
func TestEarlyReturnsExpireOnce(t *testing.T) {
	var g givenBack
	e := entry{fingerprint: 1, deadline: 100_000}
	for now := e.deadline; e.early < maxEarly; e.early++ {
		g.atDeadline(now, &e)
		r, ok := g.left.take(e.fingerprint)
		require.True(t, ok)
		after, _ := r.retry()
		now = now.Add(after)
	}
	g.atDeadline(e.deadline.Add(150*time.Millisecond), &e)
	require.Equal(t, 0, g.settle(e.deadline.Add(settleAfter+149*time.Millisecond)))
	require.Equal(t, 1, g.settle(e.deadline.Add(settleAfter+150*time.Millisecond)))
	g.settle(e.deadline.Add(forgetAfter + time.Second))
	require.Empty(t, g.left)
	require.Len(t, g.expired, 1)
}

func TestMultisetAgainstAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var m Multiset
	naive := map[uint64][]deadline.Instant{}
	for range 20_000 {
		fingerprint, at := r.Uint64N(20), deadline.Instant(r.Int64N(50))
		switch r.IntN(3) {
		case 0:
			m.add(remembered{fingerprint: fingerprint, deadline: at})
			naive[fingerprint] = append(naive[fingerprint], at)
			slices.Sort(naive[fingerprint])
		case 1:
			got, ok := m.take(fingerprint)
			require.Equal(t, len(naive[fingerprint]) > 0, ok)
			if ok {
				require.Equal(t, naive[fingerprint][0], got.deadline)
				naive[fingerprint] = naive[fingerprint][1:]
			}
		default:
			i := slices.Index(naive[fingerprint], at)
			require.Equal(t, i >= 0, m.has(remembered{fingerprint: fingerprint, deadline: at}))
			require.Equal(t, i >= 0, m.Remove(fingerprint, at))
			if i >= 0 {
				naive[fingerprint] = slices.Delete(naive[fingerprint], i, i+1)
			}
		}
	}
	total := 0
	for _, deadlines := range naive {
		total += len(deadlines)
	}
	kept := 0
	kept += len(m.Shadows())
	require.Equal(t, total, kept)
}

func TestFingerprintIsThatOfTheMessageNotOfTheDelivery(t *testing.T) {
	base := func() amqp091.Delivery {
		return amqp091.Delivery{Exchange: "e", RoutingKey: "k", MessageId: "m", Expiration: "100", Body: []byte("body"), DeliveryTag: 1,
			Timestamp: time.Unix(1000, 0), Headers: amqp091.Table{"a": int32(1), "b": []any{"x", amqp091.Table{"c": true}}}}
	}
	read := func(change func(*amqp091.Delivery)) message {
		d := base()
		change(&d)
		return read(NewFingerprints(), &d)
	}
	plain := read(func(*amqp091.Delivery) {})
	require.Equal(t, 100*time.Millisecond, plain.ttl)
	require.Equal(t, deadline.FromUnixMilli(1_001_000), plain.published)
	for _, change := range []func(*amqp091.Delivery){
		func(d *amqp091.Delivery) { d.DeliveryTag, d.Redelivered, d.ConsumerTag = 9, true, "other" },
		func(d *amqp091.Delivery) { d.Headers["x-delivery-count"] = int64(3) },
		func(d *amqp091.Delivery) { d.Headers["x-acquired-count"] = int64(3) },
	} {
		require.Equal(t, plain.fingerprint, read(change).fingerprint)
	}
	for _, change := range []func(*amqp091.Delivery){
		func(d *amqp091.Delivery) { d.Exchange, d.RoutingKey = "ek", "" },
		func(d *amqp091.Delivery) { d.Body = []byte("bodx") },
		func(d *amqp091.Delivery) { d.Expiration = "101" },
		func(d *amqp091.Delivery) { d.Headers["a"] = int32(2) },
		func(d *amqp091.Delivery) { d.Headers["b"] = []any{"x", amqp091.Table{"c": false}} },
		func(d *amqp091.Delivery) { delete(d.Headers, "a") },
	} {
		require.NotEqual(t, plain.fingerprint, read(change).fingerprint)
	}
	require.Equal(t, plain.fingerprint, uint64(0xcc67d1aed571940e), "fingerprints in Redis must stay valid")
	require.Equal(t, 3, read(func(d *amqp091.Delivery) { d.Headers["x-delivery-count"] = int64(3) }).returns)
	for _, bad := range []string{"", "-1", "soon", "99999999999999999999"} {
		require.Negative(t, read(func(d *amqp091.Delivery) { d.Expiration = bad }).ttl)
	}
}

// TestFlappingConsumersAreLeftAloneLongerAndLonger: each return within a minute doubles the time, up to five minutes.
func TestFlappingConsumersAreLeftAloneLongerAndLonger(t *testing.T) {
	s := newSim(t, 1, plainFacts(cluster.Classic), testConfig())
	s.connect()
	s.pass(time.Second)
	for i := range 10 {
		s.m.publish(uint64(i), 10*time.Hour)
	}
	var waits []time.Duration
	for range 7 {
		for s.c.state != Keeping {
			s.pass(time.Second)
		}
		s.pass(5 * time.Second)
		s.input(func(c *core) { c.consumerSeen(s.m.now) })
		s.pass(time.Second)
		waits = append(waits, s.c.aside.span/time.Second)
	}
	require.Equal(t, []time.Duration{10, 20, 40, 80, 160, 300, 300}, waits)
	require.Equal(t, 10, s.m.total())
	s.pass(10 * time.Minute)
	require.Equal(t, Keeping, s.c.state)
	require.Equal(t, 10, s.c.line.held.count)
}

// TestConsumersOfTheLastKeeper: whoever has the lease from another keeper begins at once, beside consumers that can only be that one's, until
// the list names an application's.
func TestConsumersOfTheLastKeeper(t *testing.T) {
	for _, heir := range []bool{true, false} {
		s := newSim(t, 1, plainFacts(cluster.Quorum), testConfig())
		s.m.publish(1, time.Hour)
		s.c.looks.inherits = heir
		s.m.appHere = true
		s.connect()
		s.pass(time.Second)
		require.Equal(t, heir, s.c.state == Keeping, s.c.reason.text)
		s.facts.Others = Present
		s.learn()
		s.pass(2 * time.Second)
		require.Equal(t, StandingAside, s.c.state, s.c.reason.text)
	}
}

// TestConsumersLeftBehindAreNotOthers: the node of the keeper's connection goes down, and its consumers are counted until it is back.
func TestConsumersLeftBehindAreNotOthers(t *testing.T) {
	for seed := range uint64(20) {
		s := newSim(t, seed, plainFacts(cluster.Quorum), testConfig())
		s.connect()
		s.pass(time.Second)
		s.m.silent = func() bool { return s.r.IntN(4) == 0 }
		count := 1 + s.r.IntN(200)
		for i := range count {
			s.m.publish(uint64(i), time.Hour)
			s.pass(s.within(2 * time.Millisecond))
		}
		for range 2 {
			s.loseNode()
			s.pass(s.within(time.Second))
			s.connect()
			s.pass(3 * time.Second)
			require.Equal(t, Keeping, s.c.state, s.c.reason.text)
			require.Equal(t, count, s.c.line.held.count)
			require.Zero(t, s.c.counts.UnknownAge)
		}
		for range 2 {
			s.m.appHere = true
			s.pass(4 * time.Second)
			require.Equal(t, StandingAside, s.c.state, "an application came")
			s.m.appHere = false
			for _, msg := range s.m.app {
				s.m.giveBack(msg)
			}
			s.m.app = nil
			s.pass(time.Minute)
			require.Equal(t, Keeping, s.c.state, s.c.reason.text)
			s.m.leftBehind = 0 // the nodes are back
			s.pass(time.Minute)
			require.Equal(t, Keeping, s.c.state, s.c.reason.text)
		}
	}
}

// TestLatenessIsNotToldWhileBehind: what came while RabbitMQ or the keeper was slow may have waited before that. So may what a queue gives to the
// next keeper without the flag that it was held before; its deadline is the one that the last keeper knew.
func TestLatenessIsNotToldWhileBehind(t *testing.T) {
	s := newSim(t, 1, plainFacts(cluster.Quorum), testConfig())
	s.connect()
	s.pass(2 * time.Second)
	slow := func(asked time.Duration, ready int) {
		s.input(func(c *core) {
			c.looks.askedAt = s.m.now.Add(-asked)
			c.looked(s.m.now, c.line.epoch, ready, c.line.own(), other, "", true)
		})
	}
	late := func(happen func()) bool {
		s.m.publish(uint64(s.m.places), time.Second)
		s.pass(50 * time.Millisecond)
		before := len(s.c.given.expired)
		happen()
		s.pass(2 * time.Second)
		require.Len(t, s.c.given.expired, before+1)
		return s.c.given.expired[before].AgeUnknown
	}
	require.False(t, late(func() {}))
	require.True(t, late(func() { slow(400*time.Millisecond, 0) }), "RabbitMQ answers late")
	require.True(t, late(func() { slow(0, 3); slow(0, 3) }), "messages wait although all had been taken")
	require.True(t, late(func() { s.m.now = s.m.now.Add(700 * time.Millisecond); s.input(func(c *core) { c.tick(s.m.now) }) }), "the keeper stands still")
	require.False(t, late(func() {}), "all is well again")

	heir := newSim(t, 2, plainFacts(cluster.Quorum), testConfig())
	heir.c.looks.inherits = true
	known := heir.m.now.Add(time.Hour)
	heir.input(func(c *core) { c.given.remember(heir.m.now, []Shadow{{Fingerprint: 1, Deadline: known}}) })
	heir.connect()
	heir.pass(3 * time.Second)
	require.True(t, heir.c.ages.caughtUp || heir.m.now < heir.c.ages.trustAt)
	heir.m.publish(1, 2*time.Hour) // the queue gives it back only now
	heir.pass(time.Second)
	require.Equal(t, known, heir.c.line.held.entries[heir.c.line.held.due.Items[0]].deadline)
}

// TestTheListTellsWhoIsLeftBehind: RabbitMQ may go on counting some of the consumers of a lost connection and not others. Their number is that of
// an application, but not their tags. A consumer that came in the last seconds is not in the list yet.
func TestTheListTellsWhoIsLeftBehind(t *testing.T) {
	for seed := range uint64(20) {
		s := newSim(t, seed, plainFacts(cluster.Quorum), testConfig())
		attach := func(here bool) {
			s.m.appHere = here
			for _, msg := range s.m.app {
				s.m.giveBack(msg)
			}
			s.m.app = nil
		}
		is := func(state State, why string) {
			t.Helper()
			require.Equal(t, state, s.c.state, "%s: %s", why, s.c.reason.text)
		}
		s.connect()
		count := 50 + s.r.IntN(150)
		for i := range count {
			s.m.publish(uint64(i), 24*time.Hour)
		}
		s.pass(time.Second)

		s.facts.Others = Absent
		s.loseNode()
		s.m.leftBehind = 2 + s.r.IntN(s.m.leftBehind/2)
		s.connect()
		s.pass(2 * time.Second)
		is(Keeping, "they are taken for the keeper's own")
		require.Equal(t, count, s.c.line.held.count)
		s.m.leftBehind--
		s.pass(2 * time.Second)
		is(Keeping, "fewer")

		attach(true)
		s.input(func(c *core) { c.consumerSeen(s.m.now) })
		s.pass(2 * time.Second)
		is(StandingAside, "an application, which the list does not have yet")
		s.facts.Others = Present
		s.learn()
		s.pass(time.Minute)
		is(StandingAside, "an application, which the list has")
		attach(false)
		s.facts.Others = Absent
		s.pass(time.Minute)
		is(Keeping, "the application has gone")

		s.m.leftBehind = 0
		s.pass(time.Second)
		attach(true)
		s.pass(5 * time.Second)
		is(StandingAside, "an application, and nobody was left behind")
		s.pass(time.Minute)
		is(StandingAside, "a list that is wrong: nobody was left behind, so they can only be others")
		attach(false)
		s.pass(time.Minute)
		is(Keeping, "nobody is there")

		s.facts.Others = Present
		s.disconnect() // in order: nobody is left behind
		attach(true)
		s.connect()
		s.pass(time.Minute)
		is(StandingAside, "an application that came meanwhile")
		s.disconnect()
		s.connect()
		s.pass(time.Minute)
		is(StandingAside, "it is there still")
	}
}

// TestAnApplicationInPlaceOfTheLost: it comes when what was left behind goes, while the queue does not answer, and no event tells. The list does;
// nobody needs it if it cannot be seen.
func TestAnApplicationInPlaceOfTheLost(t *testing.T) {
	for seed := range uint64(20) {
		for _, others := range []Presence{Absent, Unlisted} {
			s := newSim(t, seed, plainFacts(cluster.Quorum), testConfig())
			s.facts.Others = others
			s.connect()
			for i := range 100 {
				s.m.publish(uint64(i), 24*time.Hour)
			}
			s.pass(time.Second)
			s.loseNode()
			s.connect()
			s.pass(listAge + s.within(time.Second))
			require.Equal(t, Keeping, s.c.state, s.c.reason.text)
			s.m.leftBehind = 0
			s.m.appHere = true
			if others == Absent {
				s.facts.Others = Present
				s.pass(listAge)
			}
			s.pass(3 * time.Second)
			require.Equal(t, StandingAside, s.c.state, s.c.reason.text)
		}
	}
}

// TestTheLostGoBeforeTheListIsRead: 4.3 gives back what the cancelled consumers of a lost node held a second later, counts these consumers no more, and goes on
// counting the one that was taking. RabbitMQ's list cannot be read yet, as one node is missing. They are a keeper's all the same: this one's, or that of the
// Curfew that had the lease before. The keeper gives way once the list names an application.
func TestTheLostGoBeforeTheListIsRead(t *testing.T) {
	for seed := range uint64(20) {
		s := newSim(t, seed, kinds()[3], testConfig())
		s.facts.Others = Absent
		s.connect()
		for i := range 100 {
			s.m.publish(uint64(i), 24*time.Hour)
		}
		s.pass(time.Second)
		s.loseNode()
		if seed%2 == 0 {
			s.c = newCore(s.c.cfg, s.m.now)
			s.c.looks.inherits = true
		}
		s.facts.Others = Unclear
		s.connect()
		s.pass(time.Second)
		require.Equal(t, Keeping, s.c.state, s.c.reason.text)
		require.Greater(t, s.m.leftBehind, 5)
		for _, left := range []int{4, 1} {
			s.m.leftBehind = left
			s.pass(time.Second)
			require.Equal(t, Keeping, s.c.state, s.c.reason.text)
		}
		s.facts.Others = Absent
		s.learn()
		s.pass(time.Minute)
		require.Equal(t, Keeping, s.c.state, s.c.reason.text)
		require.Zero(t, s.c.counts.Releases)

		s.m.leftBehind, s.m.appHere = 0, true
		s.facts.Others = Present
		s.learn()
		s.pass(2 * time.Second)
		require.Equal(t, StandingAside, s.c.state, s.c.reason.text)
	}
}

// TestTheListTellsAfterASilentLeader: the queue has no leader for so long that nobody seems to consume, and then counts again what the keeper left behind.
func TestTheListTellsAfterASilentLeader(t *testing.T) {
	s := newSim(t, 1, plainFacts(cluster.Quorum), testConfig())
	s.facts.Others = Absent
	s.connect()
	for i := range 100 {
		s.m.publish(uint64(i), 24*time.Hour)
	}
	s.pass(time.Second)
	s.loseNode()
	s.connect()
	s.input(func(c *core) { c.consumerSeen(s.m.now) })
	silent := true
	s.m.silent = func() bool { return silent }
	s.pass(firstAside - time.Second)
	s.input(func(c *core) { c.consumerSeen(s.m.now) })
	s.pass(distrustZero - 8*time.Second)
	require.Equal(t, StandingAside, s.c.state)
	silent = false
	s.pass(2 * listAge)
	require.Equal(t, Keeping, s.c.state, s.c.reason.text)
}

// TestNothingIsHeldForACancelledConsumer on 3.x, which would strand it if its node went down; elsewhere, nothing is put back.
func TestNothingIsHeldForACancelledConsumer(t *testing.T) {
	for _, f := range kinds() {
		s := newSim(t, 1, f, testConfig())
		s.connect()
		s.pass(time.Second)
		for i := range 300 {
			s.m.publish(uint64(i), []time.Duration{time.Hour, 3 * time.Second}[i%2])
			s.pass(s.within(10 * time.Millisecond))
		}
		s.pass(2 * time.Second)
		stays := 0
		for _, ch := range s.m.channels {
			stays += len(ch.stays)
			for i, unacked := range ch.counts {
				live := i == len(ch.counts)-1 && ch.prefetch > 0
				require.Equal(t, f.putsBack() && len(unacked) > 0 && !live, ch.stays[i])
			}
		}
		require.Equal(t, f.putsBack(), stays > 10)
	}
}

// TestASecondConsumerOfAStretchFills: what the first one took has expired when the second one is full, so the stretch holds less than a channel may.
// Another consumer takes the rest.
func TestASecondConsumerOfAStretchFills(t *testing.T) {
	for _, f := range kinds() {
		s := newSim(t, 1, f, testConfig())
		s.connect()
		s.pass(time.Second)
		half := s.c.cfg.perChannel / 2
		for i := range half {
			s.m.publish(uint64(i), 3*time.Second)
		}
		s.pass(time.Second)
		s.input(func(c *core) { c.line.cancelConsumer() }) // as before another stretch is rolled
		s.pass(4 * time.Second)
		require.Len(t, s.m.expired, half)
		for i := range 2 * half {
			s.m.publish(uint64(half+i), time.Hour)
		}
		s.pass(time.Second)
		require.Zero(t, s.m.total(), "all are held")
	}
}

// TestANeglectedConsumerIsReplaced: RabbitMQ gives a consumer nothing any more although messages are ready. Another one gets them, and then all is well. If it
// does not, there are fewer and fewer tries.
func TestANeglectedConsumerIsReplaced(t *testing.T) {
	for _, f := range kinds() {
		s := newSim(t, 1, f, testConfig())
		s.c.cfg.perChannel = 1000
		s.connect()
		s.pass(time.Second)
		neglect := func() {
			for _, ch := range s.m.channels {
				if ch.prefetch > 0 {
					ch.prefetch = len(ch.counts[len(ch.counts)-1])
				}
			}
		}
		s.m.publish(0, time.Hour)
		s.pass(time.Second)
		neglect()
		for i := range neglectLeast {
			s.m.publish(uint64(1+i), time.Hour)
		}
		s.pass(neglectFor - time.Second)
		require.Equal(t, neglectLeast, s.m.total())
		s.pass(3 * time.Second)
		require.Zero(t, s.m.total(), "another one has taken all")
		require.Zero(t, s.c.looks.neglected)
		require.Equal(t, Keeping, s.c.state)
	}

	l, tries := looks{ready: neglectLeast}, 0
	for now := deadline.FromUnixMilli(1e12); now < deadline.FromUnixMilli(1e12).Add(time.Hour); now = now.Add(lookEvery) {
		if l.neglects(now, true) {
			tries++
		}
	}
	require.Equal(t, 5, tries, "after 1.5, 4.5, 10.5, 22.5 and 46.5 minutes")
}

// TestConsumersThatAreGoneAreNotOthers: a quorum queue under load goes on counting consumers that have given back all they held.
func TestConsumersThatAreGoneAreNotOthers(t *testing.T) {
	for _, f := range kinds()[1:] {
		for seed := range uint64(10) {
			f.ConsumerTimeout = 20 * time.Second
			s := newSim(t, seed, f, testConfig())
			s.connect()
			s.pass(time.Second)
			s.m.slow = func() time.Duration { return s.within(5 * time.Second) }
			for i := range 500 {
				s.m.publish(uint64(i), s.within(5*time.Second))
				s.pass(s.within(100 * time.Millisecond))
			}
			require.Equal(t, Keeping, s.c.state, s.c.reason.text)
			require.Zero(t, s.c.counts.Releases)

			came := s.m.now
			s.m.slow = func() time.Duration { return s.within(300 * time.Millisecond) }
			s.m.appHere, s.facts.Others = true, Present
			for s.c.state == Keeping {
				s.m.publish(uint64(s.m.places), s.within(5*time.Second))
				s.pass(s.within(100 * time.Millisecond))
			}
			require.Less(t, s.m.now.Sub(came), 20*time.Second, "an application came")
			require.Equal(t, Consumer, s.c.reason.code)
		}
	}
}

// TestAQueueThatIsDeclaredAgain: nothing that was held still exists. What is published then is kept, and an application is not starved,
// whether a consumer was there to be cancelled or not.
func TestAQueueThatIsDeclaredAgain(t *testing.T) {
	for _, f := range kinds() {
		for seed := range uint64(10) {
			s := newSim(t, seed, f, testConfig())
			s.connect()
			s.pass(time.Second)
			for i := range 50 {
				s.m.publish(uint64(i), time.Hour)
				s.pass(s.within(10 * time.Millisecond))
			}
			s.pass(s.within(2 * time.Second))
			s.m.declareAgain()
			s.pass(15 * time.Second)
			require.Zero(t, s.c.line.held.count)
			late := s.m.publish(1000, 2*time.Second)
			s.m.publish(1001, time.Hour)
			s.pass(3 * time.Second)
			require.Less(t, s.m.expired[late.id].Sub(late.expires), 200*time.Millisecond)
			require.Equal(t, 1, s.c.line.held.count)
			s.m.appHere = true
			s.pass(2 * time.Second)
			require.Equal(t, StandingAside, s.c.state)
		}
	}
}

func TestLimitsRefuseAndRecover(t *testing.T) {
	cfg := testConfig()
	cfg.limit = 20
	s := newSim(t, 1, plainFacts(cluster.Classic), cfg)
	s.connect()
	s.pass(time.Second)
	for i := range 25 {
		s.m.publish(uint64(i), time.Minute)
	}
	s.pass(2 * time.Second)
	require.Equal(t, Refused, s.c.state)
	require.Equal(t, 25, s.m.total())
	s.pass(2 * time.Minute) // they expire at the head
	require.Equal(t, Keeping, s.c.state)
}

func TestMessagesWithoutTTLAreNotWorthKeeping(t *testing.T) {
	cfg := testConfig()
	cfg.perChannel, cfg.endlessMost = 1000, 0.5
	s := newSim(t, 1, plainFacts(cluster.Classic), cfg)
	s.connect()
	s.pass(time.Second)
	for i := range 1001 {
		s.m.publish(uint64(i), -1)
	}
	s.pass(2 * time.Second)
	require.Equal(t, Refused, s.c.state)
	require.True(t, slices.IsSorted(s.order()))
	for range 502 {
		s.m.pop()
	}
	s.pass(2 * time.Second)
	require.Equal(t, Keeping, s.c.state)
}

// TestShortVisitsAreSeen: a consumer that comes for 100 ms each second is seen without events, and gets messages.
func TestShortVisitsAreSeen(t *testing.T) {
	for _, f := range kinds() {
		for _, pause := range []time.Duration{900 * time.Millisecond, 400 * time.Millisecond} {
			s := newSim(t, 1, f, testConfig())
			s.connect()
			s.pass(time.Second)
			for i := range 50 {
				s.m.publish(uint64(i+10), time.Hour)
			}
			s.pass(3 * time.Second)
			require.Equal(t, 50, s.c.line.held.count)
			served := 0
			for range 120 {
				s.m.appHere = true
				s.m.run()
				s.pass(100 * time.Millisecond)
				if len(s.m.app) > 0 {
					served++
				}
				s.m.appHere = false
				for _, m := range s.m.app {
					s.m.giveBack(m)
				}
				s.m.app = nil
				s.m.run()
				s.pass(pause)
			}
			require.Greater(t, served, 30, "%v: %v (%s)", f, s.c.state, s.c.reason.text)
		}
	}
}

// TestOneGlimpseIsNotEnough: a single look that counts one consumer more does not end the keeping, nor does another one long after it.
func TestOneGlimpseIsNotEnough(t *testing.T) {
	s := newSim(t, 1, plainFacts(cluster.Classic), testConfig())
	s.connect()
	s.pass(time.Second)
	for range 3 {
		s.input(func(c *core) { c.looked(s.m.now, c.line.epoch, 0, c.line.own()+1, other, "", true) })
		s.pass(glimpsesWithin + time.Second)
	}
	require.Equal(t, Keeping, s.c.state)
	require.Zero(t, s.c.counts.Releases)
}

// TestAFullDeliveryLimitIsRefusedUntilTheQueueIsEmpty: whoever takes a message that has been returned too often would return it once more.
func TestAFullDeliveryLimitIsRefusedUntilTheQueueIsEmpty(t *testing.T) {
	f := plainFacts(cluster.Quorum)
	f.DeliveryLimit = 20
	s := newSim(t, 1, f, testConfig())
	s.connect()
	s.pass(time.Second)
	s.m.publish(1, time.Minute).returns = 6
	s.m.publish(2, 2*time.Minute)
	s.pass(time.Second)
	for range 2 {
		require.Equal(t, Refused, s.c.state)
		require.Equal(t, DeliveryLimit, s.c.reason.code)
		s.learn() // the same facts change nothing about that
		s.pass(30 * time.Second)
	}
	s.pass(2 * time.Minute)
	require.Equal(t, Keeping, s.c.state)
}

// TestALargeMessageIsRefusedUntilItHasGone: one message that is larger than the budget.
func TestALargeMessageIsRefusedUntilItHasGone(t *testing.T) {
	cfg := testConfig()
	cfg.bytesLimit = 0
	s := newSim(t, 1, plainFacts(cluster.Classic), cfg)
	s.connect()
	s.pass(time.Second)
	s.m.publish(1, time.Minute)
	s.pass(50 * time.Second)
	require.Equal(t, Refused, s.c.state)
	s.pass(20 * time.Second)
	require.Equal(t, Keeping, s.c.state)
}

// TestGenerationsOn43: the consumer of a quorum queue asks for a long timeout, and nothing is held for that long.
func TestGenerationsOn43(t *testing.T) {
	s := newSim(t, 1, kinds()[3], testConfig())
	s.connect()
	s.pass(time.Second)
	s.m.publish(1, 72*time.Hour)
	s.pass(25 * time.Hour)
	require.EqualValues(t, 2, s.c.counts.Rolls)
}

// TestDeadlinesByAnotherClock: the last keeper's clock was behind. Its deadlines prove wrong; that is not harm, and costs few returns.
func TestDeadlinesByAnotherClock(t *testing.T) {
	for _, f := range kinds() {
		for behind, late := range map[time.Duration]time.Duration{100 * time.Millisecond: 200 * time.Millisecond, 5 * time.Second: 15 * time.Second} {
			s := newSim(t, 1, f, testConfig())
			s.c.cfg.perChannel = 1000
			s.connect()
			s.pass(time.Second)
			var messages []*modelMessage
			for i := range 1200 {
				messages = append(messages, s.m.publish(uint64(i+10), 30*time.Second))
			}
			s.pass(5 * time.Second)
			shadows := s.c.line.shadows()
			require.Len(t, shadows, 1200)
			s.disconnect()
			s.c = newCore(s.c.cfg, s.m.now)
			for i := range shadows {
				shadows[i].Deadline = shadows[i].Deadline.Add(-behind)
			}
			s.c.given.remember(s.m.now, shadows)
			s.connect()
			s.pass(70 * time.Second)
			require.Equal(t, Keeping, s.c.state, "%v: %s", f, s.c.reason.text)
			require.LessOrEqual(t, s.c.counts.Early, uint64(4*1200))
			for _, m := range messages {
				require.Less(t, s.m.expired[m.id].Sub(m.expires), late, "%v", f)
			}
		}
	}
}

// TestEqualMessagesAfterOthersWereConsumed: their deadlines are not those of the messages before them.
func TestEqualMessagesAfterOthersWereConsumed(t *testing.T) {
	for _, f := range kinds() {
		s := newSim(t, 1, f, testConfig())
		s.c.cfg.perChannel = 100
		s.connect()
		s.pass(time.Second)
		const count = 1500
		for range count {
			s.m.publish(7, time.Minute)
		}
		s.pass(3 * time.Second)
		require.Equal(t, count, s.c.line.held.count)
		s.m.appHere = true
		s.input(func(c *core) { c.consumerSeen(s.m.now) })
		for s.m.total()+s.c.line.held.count > 0 {
			s.pass(5 * time.Millisecond)
			for _, m := range s.m.app {
				s.m.consumed[m.id] = true
			}
			s.m.app = nil
			s.m.run()
		}
		s.m.appHere = false
		s.pass(2 * time.Second)
		for range count {
			s.m.publish(7, time.Minute)
		}
		s.pass(2 * time.Minute)
		require.Equal(t, Keeping, s.c.state, "%v: %s", f, s.c.reason.text)
		require.Less(t, s.c.counts.Early, uint64(2*count))
		require.Len(t, s.m.expired, count)
	}
}

// TestATTLThatWasRaised: the keeper learns of it six seconds later. The deadlines from before prove wrong, which is not harm.
func TestATTLThatWasRaised(t *testing.T) {
	for _, f := range kinds() {
		f.TTL = 10 * time.Second
		s := newSim(t, 1, f, testConfig())
		s.c.cfg.perChannel = 1000
		s.connect()
		s.pass(time.Second)
		var messages []*modelMessage
		for range 1500 {
			m := s.m.publish(uint64(s.m.places+100), time.Minute)
			m.ttl = -1 // its time to live is that of the queue
			messages = append(messages, m)
			s.pass(4 * time.Millisecond)
		}
		s.facts.TTL = time.Minute
		s.learn()
		s.pass(80 * time.Second)
		require.Equal(t, Keeping, s.c.state, "%v: %s", f, s.c.reason.text)
		require.LessOrEqual(t, s.c.counts.Early, uint64(6*1500))
		for _, m := range messages {
			require.Less(t, s.m.expired[m.id].Sub(m.expires), 5*time.Second, "%v", f)
		}
	}
}

// TestMessagesThatDoNotExpireCostFewReturns: the settings do not show why they come back at their deadlines.
func TestMessagesThatDoNotExpireCostFewReturns(t *testing.T) {
	f := plainFacts(cluster.Classic)
	f.TTL = 3 * time.Second
	s := newSim(t, 1, f, testConfig())
	s.c.cfg.perChannel = 100
	s.connect()
	s.pass(time.Second)
	const count = 1100
	for i := range count {
		s.m.publish(uint64(i), time.Hour).ttl = -1 // RabbitMQ does not know the queue's time to live
	}
	s.pass(time.Minute)
	require.Equal(t, Keeping, s.c.state)
	require.LessOrEqual(t, s.c.counts.Early, uint64(count*60/2))
}

// TestRecordsOfConsumedMessagesAreForgotten: of a queue that others empty, and after their deadlines.
func TestRecordsOfConsumedMessagesAreForgotten(t *testing.T) {
	s := newSim(t, 1, plainFacts(cluster.Classic), testConfig())
	s.connect()
	s.pass(time.Second)
	publish := func(n int) {
		for range n {
			s.m.publish(uint64(s.m.places+1), time.Hour)
		}
	}
	remembered := func() int { return len(s.c.given.waiting) + len(s.c.given.passed) }
	for range 30 {
		publish(100)
		s.c.aside.span = longestAside
		s.pass(2 * time.Second)
		s.input(func(c *core) { c.consumerSeen(s.m.now) })
		s.pass(time.Second)
		consumed := s.m.total() - 20
		for range consumed {
			s.m.consumed[s.m.head().id] = true
			s.m.pop()
		}
		publish(50)
		s.pass(2 * time.Minute)
	}
	require.Less(t, remembered(), 500)
	s.m.appHere = true
	s.input(func(c *core) { c.consumerSeen(s.m.now) })
	s.pass(2 * time.Hour)
	require.Zero(t, remembered())
}

// consumerOf returns the stretch that the core has asked to consume.
func consumerOf(t *testing.T, c *core) uint32 {
	i := slices.IndexFunc(c.line.out, func(cmd command) bool { return cmd.do == consume })
	require.GreaterOrEqual(t, i, 0)
	return c.line.out[i].stretch
}

// TestALookOvertakesDeliveries: RabbitMQ has sent everything, and the answer to a look comes before the rest of it. Those are not new messages.
func TestALookOvertakesDeliveries(t *testing.T) {
	now := deadline.Instant(1_000_000_000)
	c := newCore(testConfig(), now)
	c.cfg.perChannel = 1000
	c.connect(now, plainFacts(cluster.Classic))
	c.looked(now, c.line.epoch, 500, 0, other, "", true)
	id := consumerOf(t, c)
	c.opened(now, id)
	deliver := func(from, until int) {
		for i := from; i < until; i++ {
			c.deliver(now, id, uint64(i+1), message{fingerprint: uint64(i), ttl: time.Hour})
		}
	}
	deliver(0, 100)
	c.looked(now, c.line.epoch, 0, 1, other, "", true)
	deliver(100, 490) // ten have expired at the head
	require.EqualValues(t, 490, c.counts.UnknownAge)
	require.False(t, c.ages.caughtUp)
	c.looked(now, c.line.epoch, 0, 1, other, "", true)
	require.True(t, c.ages.caughtUp)
}

// TestALoweredTimeoutIsLearned from RabbitMQ, which names it when it closes a channel. It holds against facts that do not know it yet.
func TestALoweredTimeoutIsLearned(t *testing.T) {
	s := newSim(t, 1, plainFacts(cluster.Classic), testConfig())
	s.connect()
	s.pass(time.Second)
	s.m.publish(1, time.Hour)
	s.pass(time.Second)
	id := s.c.line.consumer.id
	s.m.loseChannel(id)
	s.input(func(c *core) {
		c.lost(s.m.now, id, timedOut, "PRECONDITION_FAILED - delivery acknowledgement on channel 2 timed out. Timeout value used: 60000 ms. "+
			"This timeout value can be configured")
	})
	s.learn()
	s.pass(65 * time.Second)
	require.EqualValues(t, 2, s.c.counts.Rolls)
	require.Zero(t, timeoutIn("timed out"))
}

// lostLease is a lease whose Redis went away.
type lostLease struct{ held bool }

func (l *lostLease) Acquire(context.Context) (string, bool, error) {
	if l.held {
		return "us", true, nil
	}
	return "", false, errors.New("no Redis")
}

func (l *lostLease) Release(context.Context) error { return nil }

// TestAHolderGoesOnWithoutRedis after its connection to RabbitMQ was cut. A keeper that never had the lease waits.
func TestAHolderGoesOnWithoutRedis(t *testing.T) {
	for _, had := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			l, connects, waited := &lostLease{held: had}, 0, false
			k, err := New(Options{Queue: "q", Lease: l, Facts: func(context.Context) (Facts, error) { return Facts{}, nil },
				Connect: func(context.Context) (*cluster.Conn, error) {
					connects++
					l.held = false
					return nil, errors.New("no RabbitMQ")
				},
				Changed: func(s Status) { waited = waited || s.Code == LostLease }})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, k.Run(ctx))
			require.Equal(t, had, connects > 1)
			require.Equal(t, had, !waited)
			require.NotEmpty(t, k.Status().LeaseError)
		})
	}
}

// TestLooksAreRareAmongManyQueues: while nothing is unclear, the queue is asked as seldom as it is said; an application is seen all the same.
func TestLooksAreRareAmongManyQueues(t *testing.T) {
	for _, f := range kinds() {
		cfg := testConfig()
		cfg.lookEvery = func() time.Duration { return 5 * time.Second }
		s := newSim(t, 1, f, cfg)
		s.connect()
		s.m.publish(1, time.Hour)
		s.pass(2 * distrustZero)
		require.Equal(t, Keeping, s.c.state)
		looks, last := 0, s.c.looks.askedAt
		for range 600 {
			s.pass(100 * time.Millisecond)
			if s.c.looks.askedAt != last {
				looks, last = looks+1, s.c.looks.askedAt
			}
		}
		require.InDelta(t, 12, looks, 2, f)
		s.m.appHere, s.facts.Others = true, Present
		s.pass(6 * time.Second)
		require.Equal(t, StandingAside, s.c.state, f)
	}
}
