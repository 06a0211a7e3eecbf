package rates

import (
	"slices"
	"sync"
	"time"

	"curfew/broker/management/rest"
)

// sampleEvery is the least age of the baseline of a rate, once there is one.
const sampleEvery = 5 * time.Second

// Counts are the totals of one thing, by their names in message_stats.
type Counts map[string]uint64

// Sampled are the counts in a sample, without those that are 0, so that an unused queue takes
// almost no memory.
type Sampled []count

type count struct {
	name string
	n    uint64
}

// Sampled returns the counts that are not 0.
func (c Counts) Sampled() (s Sampled) {
	for name, n := range c {
		if n > 0 {
			s = append(s, count{name, n})
		}
	}
	return slices.Clip(s)
}

// of returns a count by its name, 0 if it is missing.
func (s Sampled) of(name string) uint64 {
	for i := range s {
		if s[i].name == name {
			return s[i].n
		}
	}
	return 0
}

// sample has all counts at one instant.
type sample struct {
	at   time.Time
	seen map[any]Sampled
}

// Rates keeps two samples: the older one, with which current counts are compared, and the newer
// one, which replaces it at an age of sampleEvery. Safe for concurrent use.
type Rates struct {
	count func() map[any]Sampled
	now   func() time.Time

	mu           sync.Mutex
	older, newer *sample
	histories    map[any]*history // by key; maxHistories at most
	questions    int              // number of requests for samples
}

// New makes rates of the counts that count returns, by a key for each thing. now is the clock.
func New(count func() map[any]Sampled, now func() time.Time) *Rates {
	return &Rates{count: count, now: now, histories: map[any]*history{}}
}

// Refresh takes a sample if it is time. It must be called before rates are shown.
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

// Stats returns the totals, each with its rate. A thing that did not exist at the older sample
// counts from 0.
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

// baselineLocked returns a thing's counts at the older sample, if it existed then, and how many
// seconds ago that was; 0: there is no sample yet.
func (r *Rates) baselineLocked(key any) (base Sampled, known bool, elapsed float64) {
	if r.older == nil {
		return nil, false, 0
	}
	base, known = r.older.seen[key]
	return base, known, r.now().Sub(r.older.at).Seconds()
}

// Details returns the rate, in units per second.
func Details(now, before uint64, seconds float64) rest.Object {
	if seconds <= 0 || now < before {
		return rest.Object{"rate": rest.Rate(0)}
	}
	return rest.Object{"rate": rest.Rate(float64(now-before) / seconds)}
}

// Gauge adds a number that goes up and down, with its change per second.
func (r *Rates) Gauge(o rest.Object, key any, name string, now int) {
	r.mu.Lock()
	base, known, elapsed := r.baselineLocked(key)
	r.mu.Unlock()
	o[name] = now
	o[name+"_details"] = rest.Object{"rate": Change(now, base.of(name), known, elapsed)}
}

// Change returns the change of a gauge per second; 0 if it was not known before.
func Change(now int, before uint64, known bool, seconds float64) rest.Rate {
	if !known || seconds <= 0 {
		return 0
	}
	return rest.Rate((float64(now) - float64(before)) / seconds)
}

// Sum returns the sum of several things' counts at the older sample, if any of them existed then, and how many seconds ago that was.
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
