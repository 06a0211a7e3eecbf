package operate

import (
	"slices"
	"sync"
	"time"

	"curfew/broker"
	"curfew/broker/server"
)

// sampleEvery is the least age of the baseline of a rate, once there is one, and firstAfter that of the first one.
const sampleEvery, firstAfter = 5 * time.Second, time.Second

// Counts are the totals of one thing, by their names in RabbitMQ's message_stats.
type Counts map[string]uint64

// counted are the counts in a sample, without those that are 0, so that an unused queue takes
// almost no memory.
type counted []count

type count struct {
	name string
	n    uint64
}

func (c Counts) counted() (s counted) {
	for name, n := range c {
		if n > 0 {
			s = append(s, count{name, n})
		}
	}
	return slices.Clip(s)
}

// of returns a count by its name, 0 if it is missing.
func (s counted) of(name string) uint64 {
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
	seen map[any]counted
}

// Rates is the only place where counts become rates: the API and the pages show the same numbers. It keeps two samples: the older one,
// with which current counts are compared, and the newer one, which replaces it at an age of 5 s, or of 1 s if no rate is known yet. Samples
// are taken while somebody asks, so rates cost nothing otherwise. Safe for concurrent use.
type Rates struct {
	all func() map[any]counted
	now func() time.Time

	mu           sync.Mutex
	older, newer *sample
	courses      map[any]*course // by key; maxCourses at most
	questions    int             // number of requests for courses
}

// The keys of what is counted, besides the identities of connections and channels.
type (
	TotalKey    struct{} // all messages
	ChurnKey    struct{} // connections, channels and queues that come and go
	QueueKey    uint64   // incarnation
	ExchangeKey struct{ VHost, Name string }
)

// Refresh takes a sample if it is time. It must be called before rates are read.
func (r *Rates) Refresh() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, every := r.now(), sampleEvery
	if r.older == nil || now.Sub(r.older.at) > oldest {
		every = firstAfter
	}
	if r.newer != nil && now.Sub(r.newer.at) < every {
		return
	}
	r.older, r.newer = r.newer, &sample{at: now, seen: r.all()}
	for key, h := range r.courses {
		if s, there := r.newer.seen[key]; there {
			h.append(now, s)
		} else { // it no longer exists
			delete(r.courses, key)
		}
	}
}

// Rate is how fast a count changes.
type Rate struct {
	// Known is false if there is no sample to compare with, or only one that is older than a minute: the rate is that since then.
	Known     bool
	PerSecond float64
}

// oldest is the greatest age of a sample that pages compare with.
const oldest = time.Minute

// Of returns the rates of a thing's counts, or of the sum of several things'. One that did not exist at the older sample counts from 0.
func (r *Rates) Of(c Counts, keys ...any) map[string]Rate {
	base, seconds := r.baseline(keys)
	list := make(map[string]Rate, len(c))
	for name, n := range c {
		list[name] = rateSince(base.of(name), n, seconds)
	}
	return list
}

func rateSince(before, now uint64, seconds float64) Rate {
	rate := Rate{Known: seconds > 0 && seconds <= oldest.Seconds()}
	if seconds > 0 && now >= before {
		rate.PerSecond = float64(now-before) / seconds
	}
	return rate
}

// entered is the name of what RabbitMQ does not count: what came into a queue, dead letters among it.
const entered = "entered"

// Flow returns how fast messages go into a queue, and out of it. It allocates nothing: a page asks for it about each of 50,000 queues.
func (r *Rates) Flow(q *Queue) (in, out Rate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.older == nil {
		return in, out
	}
	before, seconds := r.older.seen[QueueKey(q.ID)], r.now().Sub(r.older.at).Seconds()
	return rateSince(before.of(entered), q.Stats.Entered(), seconds), rateSince(before.of("deliver_get"), q.Stats.AllDelivered(), seconds)
}

// Change returns the change of a number that goes up and down: that of a thing, or the sum of several. It is not known of what did
// not exist at the older sample.
func (r *Rates) Change(keys []any, name string, now int) Rate {
	base, seconds := r.baseline(keys)
	if len(base) == 0 || seconds <= 0 {
		return Rate{}
	}
	return Rate{seconds <= oldest.Seconds(), (float64(now) - float64(base.of(name))) / seconds}
}

// baseline returns the counts at the older sample of those things that existed then, and how many seconds ago that was; 0: there
// is no sample yet.
func (r *Rates) baseline(keys []any) (base several, seconds float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.older == nil {
		return nil, 0
	}
	for _, key := range keys {
		if one, existed := r.older.seen[key]; existed {
			base = append(base, one)
		}
	}
	return base, r.now().Sub(r.older.at).Seconds()
}

// several are the counts of several things.
type several []counted

// of returns the sum of the counts of a name.
func (s several) of(name string) (sum uint64) {
	for _, one := range s {
		sum += one.of(name)
	}
	return sum
}

// Bounds of the courses of counts.
const (
	maxCourses = 32  // things; the one that was not requested for longest is dropped
	maxKept    = 120 // samples of a thing, at least sampleEvery apart
)

// course has a thing's counts at each sample since they were first requested, the oldest
// first.
type course struct {
	asked int // when it was last requested, counted in requests
	at    []time.Time
	seen  []counted
}

func (h *course) append(at time.Time, s counted) {
	if len(h.at) == maxKept {
		h.at, h.seen = append(h.at[:0], h.at[1:]...), append(h.seen[:0], h.seen[1:]...)
	}
	h.at, h.seen = append(h.at, at), append(h.seen, s)
}

// value returns the count of a name at an instant; false: it is not known.
func (h *course) value(name string, at time.Time) (n uint64, known bool) {
	for i := len(h.at) - 1; i >= 0; i-- {
		if !h.at[i].After(at) {
			return h.seen[i].of(name), true
		}
	}
	return 0, false
}

// courseLocked returns the course of a thing. A new one begins with the two samples that
// exist.
func (r *Rates) courseLocked(key any) *course {
	h := r.courses[key]
	if h == nil {
		h = new(course)
		for _, s := range []*sample{r.older, r.newer} {
			if s == nil {
				continue
			}
			if seen, there := s.seen[key]; there {
				h.append(s.at, seen)
			}
		}
		r.makeRoomLocked()
		r.courses[key] = h
	}
	r.questions++
	h.asked = r.questions
	return h
}

// makeRoomLocked makes room for one more course.
func (r *Rates) makeRoomLocked() {
	if len(r.courses) < maxCourses {
		return
	}
	var last any
	for key, h := range r.courses {
		if last == nil || h.asked < r.courses[last].asked {
			last = key
		}
	}
	delete(r.courses, last)
}

// Sample is a count at an instant.
type Sample struct {
	Sample    uint64 `json:"sample"`
	Timestamp int64  `json:"timestamp"` // Unix ms
}

// Samples returns a thing's count now, which the caller knows, and before, step by step, the newest first: as far back as is known, but
// not further than age.
func (r *Rates) Samples(key any, name string, now uint64, age, step time.Duration) []Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, at := r.courseLocked(key), r.now()
	list := []Sample{{now, at.UnixMilli()}}
	for back := step; back <= age; back += step {
		n, known := h.value(name, at.Add(-back))
		if !known {
			break
		}
		list = append(list, Sample{n, at.Add(-back).UnixMilli()})
	}
	return list
}

// QueueCounts are what a queue counts.
func QueueCounts(c *broker.QueueStats) Counts {
	counts := messageCounts(&c.MessageStats)
	counts["publish"], counts["disk_writes"], counts["disk_reads"] = c.Published, c.Journaled, 0
	return counts
}

func messageCounts(c *broker.MessageStats) Counts {
	return Counts{
		"deliver": c.Delivered, "deliver_no_ack": c.DeliveredNoAck, "get": c.Got, "get_no_ack": c.GotNoAck, "get_empty": c.GetEmpty,
		"deliver_get": c.AllDelivered(), "ack": c.Acked, "redeliver": c.Redelivered,
	}
}

// ExchangeCounts are what an exchange counts.
func ExchangeCounts(x *broker.ExchangeInfo) Counts {
	return Counts{"publish_in": x.PublishedIn, "publish_out": x.PublishedOut}
}

// ConnectionCounts are what a connection counts.
func ConnectionCounts(c *server.ConnectionInfo) Counts {
	return Counts{"recv_oct": c.Received, "send_oct": c.Sent}
}

// ChannelCounts are what a channel counts.
func ChannelCounts(c *server.ChannelStats) Counts {
	counts := messageCounts(&c.MessageStats)
	counts["publish"], counts["confirm"], counts["return_unroutable"], counts["drop_unroutable"] = c.Published, c.Confirmed, c.Returned, c.Dropped
	return counts
}

// Totals are what the broker counts.
func (o *Operations) Totals() Counts {
	t, s := o.Broker.Stats(), &o.Server.Totals
	c := QueueCounts(&t.Queues)
	c["publish"], c["confirm"] = t.Published, s.Confirmed.Load()
	c["return_unroutable"], c["drop_unroutable"] = s.Returned.Load(), t.Unroutable-min(s.Returned.Load(), t.Unroutable)
	return c
}

// Churn is how often connections, channels and queues were opened and closed.
func (o *Operations) Churn() Counts {
	t, s := o.Broker.Stats(), &o.Server.Totals
	return Counts{
		"connection_created": s.ConnectionsOpened.Load(), "connection_closed": s.ConnectionsClosed.Load(),
		"channel_created": s.ChannelsOpened.Load(), "channel_closed": s.ChannelsClosed.Load(),
		"queue_declared": t.QueuesDeclared, "queue_created": t.QueuesCreated, "queue_deleted": t.QueuesDeleted,
	}
}

// addDepth adds the numbers of messages.
func (c Counts) addDepth(i *broker.QueueInfo) {
	c["messages_ready"] += uint64(i.Ready)
	c["messages_unacknowledged"] += uint64(i.Unacked)
	c["messages"] += uint64(i.Ready + i.Unacked + i.Waiting)
}

// countAll returns the counts of everything that has rates.
func (o *Operations) countAll() map[any]counted {
	totals := o.Totals()
	seen := map[any]counted{ChurnKey{}: o.Churn().counted()}
	for _, vh := range o.Broker.VHosts() {
		for _, q := range vh.Queues.List() {
			i := q.Info()
			c := QueueCounts(&i.Stats)
			c[entered] = i.Stats.Entered()
			c.addDepth(&i)
			totals.addDepth(&i)
			seen[QueueKey(i.ID)] = c.counted()
		}
		for _, x := range vh.Exchanges.List() {
			seen[ExchangeKey{x.VHost, x.Name}] = ExchangeCounts(&x).counted()
		}
	}
	seen[TotalKey{}] = totals.counted()
	list := o.Server.List()
	for i := range list {
		c := &list[i]
		seen[c.Identity] = ConnectionCounts(c).counted()
		for j := range c.Channels {
			seen[c.Channels[j].Identity] = ChannelCounts(&c.Channels[j].Stats).counted()
		}
	}
	return seen
}
