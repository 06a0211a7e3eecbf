package simulation

import (
	"fmt"
	"math/rand/v2"

	"curfew/broker/policy"
	"curfew/broker/store"
)

// plan is what the seed determines before the first step.
type plan struct {
	seed      uint64
	steps     int
	monitored bool // monitors fire the deadlines; otherwise the driver proposes expiries
	redis     bool // the monitors' schedule is in Redis
	disk      bool // the store has a directory, and there are restarts
	sync      store.SyncMode
	rules     rules
	names     []string // of queues
	largest   int      // body, about
	web       bool     // many queues dead-letter to one another at the same time
}

func newPlan(seed uint64) (plan, *rand.Rand) {
	rng := rand.New(rand.NewPCG(seed, seed))
	p := plan{
		seed: seed, steps: 150 + rng.IntN(200),
		monitored: chance(rng, 0.6), redis: chance(rng, 0.75), disk: chance(rng, 0.25),
		sync:  store.SyncMode(rng.IntN(3)),
		rules: rules{messageFirst: chance(rng, 0.3), park: chance(rng, 0.7)},
	}
	if p.largest = 200; p.disk {
		p.largest = segmentBytes / 8
	}
	for i := range 3 + rng.IntN(4) {
		p.names = append(p.names, fmt.Sprint("q", i))
	}
	if chance(rng, 0.2) {
		p.names = append(p.names, policy.UndeliverableQueue)
	}
	if p.web = chance(rng, 0.06); p.web {
		p.steps /= 25
		p.disk = false // a call writes many records, and a copy of the directory may end in the middle of them
		for i, n := len(p.names), pick(rng, []int{6, 8, 18, 20}); i < n; i++ {
			p.names = append(p.names, fmt.Sprint("q", i))
		}
	}
	return p, rng
}

func (p *plan) String() string {
	s := fmt.Sprintf("seed %d: %d queues, %d steps", p.seed, len(p.names), p.steps)
	for _, x := range []struct {
		on   bool
		name string
	}{
		{p.monitored, "monitored"}, {p.monitored && p.redis, "redis"}, {p.disk, fmt.Sprintf("disk (sync mode %d)", p.sync)},
		{p.web, "a web of dead letters"}, {p.rules.messageFirst, "message's TTL first"}, {p.rules.park, "parking"},
	} {
		if x.on {
			s += ", " + x.name
		}
	}
	return s
}
