package rates

import (
	"slices"
	"sync"
	"time"

	"curfew/broker/management/rest"
)

// sampleEvery is how old the baseline of a rate is at least, once there is one.
const sampleEvery = 5 * time.Second

// Counts are totals of one thing by their names in message_stats.
type Counts map[string]uint64

// Sampled are counts as a sample keeps them, without those that are 0: of a queue that
// nobody uses it keeps next to nothing.
type Sampled []count

type count struct {
	name string
	n    uint64
}

// Sampled keeps those that are not 0.
func (c Counts) Sampled() (s Sampled) {
	for name, n := range c {
		if n > 0 {
			s = append(s, count{name, n})
		}
	}
	return slices.Clip(s)
}

// of is a count by its name; 0 if it is not there.
func (s Sampled) of(name string) uint64 {
	for i := range s {
		if s[i].name == name {
			return s[i].n
		}
	}
	return 0
}

// sample is what everything had counted at one instant.
type sample struct {
	at   time.Time
	seen map[any]Sampled
}

// Rates keeps two samples: the older, to which what is counted now is compared,
// and the newer, which takes its place when it is sampleEvery old. Safe for concurrent use.
type Rates struct {
	count func() map[any]Sampled
	now   func() time.Time

	mu           sync.Mutex
	older, newer *sample
	histories    map[any]*history // by key; maxHistories at most
	questions    int              // for samples
}

// New makes rates of what count counts, each thing under a key of its own. now is the clock.
func New(count func() map[any]Sampled, now func() time.Time) *Rates {
	return &Rates{count: count, now: now, histories: map[any]*history{}}
}

// Refresh takes a sample if it is time. Whoever is about to show rates calls it.
func (r *Rates) Refresh() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if r.newer != nil && now.Sub(r.newer.at) < sampleEvery {
		return
	}
	r.older, r.newer = r.newer, &sample{at: now, seen: r.count()}
	r.rememberLocked()
}

// Stats are the totals with the rate of each beside it. A thing that was not
// there at the older sample counts from nothing.
func (r *Rates) Stats(key any, c Counts) rest.Object {
	r.mu.Lock()
	base, _, elapsed := r.baselineLocked(key)
	r.mu.Unlock()
	o := rest.Object{}
	for name, n := range c {
		o[name] = n
		o[name+"_details"] = Details(n, base.of(name), elapsed)
	}
	return o
}

// baselineLocked is what a thing had counted at the older sample, if it was there, and how many
// seconds ago that was; 0: there is none yet.
func (r *Rates) baselineLocked(key any) (base Sampled, known bool, elapsed float64) {
	if r.older == nil {
		return nil, false, 0
	}
	base, known = r.older.seen[key]
	return base, known, r.now().Sub(r.older.at).Seconds()
}

// Details is the rate in units a second.
func Details(now, before uint64, seconds float64) rest.Object {
	if seconds <= 0 || now < before {
		return rest.Object{"rate": rest.Rate(0)}
	}
	return rest.Object{"rate": rest.Rate(float64(now-before) / seconds)}
}

// Gauge is a number that goes up and down, with its change a second.
func (r *Rates) Gauge(o rest.Object, key any, name string, now int) {
	r.mu.Lock()
	base, known, elapsed := r.baselineLocked(key)
	r.mu.Unlock()
	o[name] = now
	o[name+"_details"] = rest.Object{"rate": Change(now, base.of(name), known, elapsed)}
}

// Change is that of a gauge in a second; 0 if it was not known before.
func Change(now int, before uint64, known bool, seconds float64) rest.Rate {
	if !known || seconds <= 0 {
		return 0
	}
	return rest.Rate((float64(now) - float64(before)) / seconds)
}

// Sum is what several things together had counted at the older sample, if any of them was there, and how many seconds ago that was.
func (r *Rates) Sum(keys []any) (base Counts, known bool, elapsed float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	base = Counts{}
	for _, key := range keys {
		var one Sampled
		var there bool
		one, there, elapsed = r.baselineLocked(key)
		known = known || there
		for _, c := range one {
			base[c.name] += c.n
		}
	}
	return base, known, elapsed
}
