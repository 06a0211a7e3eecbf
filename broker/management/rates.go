package management

import (
	"slices"
	"sync"
	"time"
)

// sampleEvery is how old the baseline of a rate is at least, once there is one.
const sampleEvery = 5 * time.Second

// counts are totals of one thing by their names in message_stats.
type counts map[string]uint64

// sampled are counts as a sample keeps them, without those that are 0: of a queue that
// nobody uses it keeps next to nothing.
type sampled []count

type count struct {
	name string
	n    uint64
}

func (c counts) sampled() (s sampled) {
	for name, n := range c {
		if n > 0 {
			s = append(s, count{name, n})
		}
	}
	return slices.Clip(s)
}

// of is a count by its name; 0 if it is not there.
func (s sampled) of(name string) uint64 {
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
	seen map[any]sampled
}

// rates keeps two samples: the older, to which what is counted now is compared,
// and the newer, which takes its place when it is sampleEvery old.
type rates struct {
	api *API

	mu           sync.Mutex
	older, newer *sample
	histories    map[any]*history // by key; maxHistories at most
	questions    int              // for samples
}

func (r *rates) init(a *API) { r.api, r.histories = a, map[any]*history{} }

// refresh takes a sample if it is time. Whoever is about to show rates calls it.
func (r *rates) refresh() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.api.Now()
	if r.newer != nil && now.Sub(r.newer.at) < sampleEvery {
		return
	}
	r.older, r.newer = r.newer, &sample{at: now, seen: r.api.countAll()}
	r.remember()
}

// stats are the totals with the rate of each beside it. A thing that was not
// there at the older sample counts from nothing.
func (r *rates) stats(key any, c counts) object {
	r.mu.Lock()
	base, _, elapsed := r.baseline(key)
	r.mu.Unlock()
	o := object{}
	for name, n := range c {
		o[name] = n
		o[name+"_details"] = details(n, base.of(name), elapsed)
	}
	return o
}

// baseline is what a thing had counted at the older sample, if it was there, and how many
// seconds ago that was; 0: there is none yet. Called with mu held.
func (r *rates) baseline(key any) (base sampled, known bool, elapsed float64) {
	if r.older == nil {
		return nil, false, 0
	}
	base, known = r.older.seen[key]
	return base, known, r.api.Now().Sub(r.older.at).Seconds()
}

// details is the rate in units a second.
func details(now, before uint64, seconds float64) object {
	if seconds <= 0 || now < before {
		return object{"rate": rate(0)}
	}
	return object{"rate": rate(float64(now-before) / seconds)}
}

// gauge is a number that goes up and down, with its change a second.
func (r *rates) gauge(o object, key any, name string, now int) {
	r.mu.Lock()
	base, known, elapsed := r.baseline(key)
	r.mu.Unlock()
	o[name] = now
	o[name+"_details"] = object{"rate": change(now, base.of(name), known, elapsed)}
}

// change is that of a gauge in a second; 0 if it was not known before.
func change(now int, before uint64, known bool, seconds float64) rate {
	if !known || seconds <= 0 {
		return 0
	}
	return rate((float64(now) - float64(before)) / seconds)
}

// Keys of what is one of a kind.
type (
	churnKey struct{}
	totalKey struct{}
	queueKey uint64 // incarnation
	exchKey  struct{ vhost, name string }
)

// countAll counts everything that has rates.
func (a *API) countAll() map[any]sampled {
	seen := map[any]sampled{churnKey{}: a.churn().sampled(), totalKey{}: a.totals().sampled()}
	for _, vh := range a.b.VHosts() {
		for _, q := range vh.Queues() {
			i := q.Info()
			c := queueCounts(&i.Counts)
			c["messages_ready"], c["messages_unacknowledged"] = uint64(i.Ready), uint64(i.Unacked)
			c["messages"] = uint64(i.Ready + i.Unacked)
			seen[queueKey(i.ID)] = c.sampled()
		}
		for _, x := range vh.Exchanges() {
			seen[exchKey{x.VHost, x.Name}] = exchangeCounts(&x).sampled()
		}
	}
	for _, c := range a.Server.List() {
		seen[c.Identity()] = counts{"recv_oct": c.Received, "send_oct": c.Sent}.sampled()
		for _, ch := range c.Channels {
			seen[ch.Identity()] = channelCounts(&ch.Counts).sampled()
		}
	}
	return seen
}
