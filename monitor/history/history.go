package history

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// maxQueues is how many queues have a history of their own.
	maxQueues = 1000
	// idleBefore is how long nothing must have happened in a queue for another to take its rings.
	idleBefore = time.Hour
	// keep is how long a queue that is gone is remembered at most, and keepAtLeast how long at least: what was lost in the last hour counts.
	keep, keepAtLeast = 24 * time.Hour, 2 * time.Hour
	// maxSpread is the most seconds over which a late sample is spread.
	maxSpread = 60
)

// Queue is a queue at a moment. Its counts are since it was made; a count that is lower than before has begun again.
type Queue struct {
	VHost, Name          string
	Depth                int // messages, unacked ones among them
	AtRisk               int // of these, by the forecast
	Consumers            int
	First, Last          string // the clients whose consumers came first and last, of those that it has; "": not known
	Left                 string // the client whose consumer was the last to leave, if it has none; "": not known
	LeftAt               time.Time
	Published, Delivered uint64
}

// Stats are counts since the process began.
type Stats struct{ Published, Delivered uint64 }

// Options of a History. Its functions are called by one goroutine.
type Options struct {
	// Queues calls fn with each queue, and returns how many messages clients published and how many were delivered to them, in total. Required.
	Queues func(fn func(*Queue)) Stats
	// Meant reports whether an expiry in a queue is no loss; nil: that is not known of any, so none is.
	Meant func(vhost, queue string) bool
	// State is called every few seconds. Whatever is new in it becomes a mark. Required.
	State func() State
	// Traffic says that Queues knows what is published and delivered.
	Traffic bool
	// File is where the history is kept over a restart; "": nowhere.
	File    string
	Version string // of the program, for the mark of its start
	Log     *zap.Logger
}

// History is what happened in the last day. Create it with New and run it once. Its methods are safe for concurrent use.
type History struct {
	Options
	log *zap.Logger
	now func() time.Time

	mu      sync.Mutex
	last    int64 // the last second that was written, Unix; 0: none yet
	total   series
	queues  map[[2]string]*series
	evicted map[string]tolls // what expired in queues whose rings another has, by virtual host
	full    bool             // a queue got no rings
	idle    []*series        // whose rings another queue may take
	idleAt  int64            // when they were looked for
	marks   marks
	known   state   // what the last State said
	sampled []Queue // of one round; only sample uses it
	run     bool    // something was sampled by this process
	before  ending  // of the process that wrote the file
	ending  bool    // as asked for: Run is about to return
	news    bool    // the file lacks something that a crash must not lose: a loss, or who consumes
	saved   int64   // the version of the marks in the file

	// Of the goroutine of Run: when the file was last written, and how long that took.
	savedAt  time.Time
	saveTook time.Duration
}

// New returns a history that begins with what the file has of the last day.
func New(o Options) *History {
	o.Log = cmp.Or(o.Log, zap.NewNop())
	h := &History{Options: o, log: o.Log.Named("history"), now: (&clock{at: time.Now()}).now, queues: make(map[[2]string]*series), evicted: make(map[string]tolls)}
	h.total.rings, h.total.tolls, h.total.counting = newRings(totalLengths), make(tolls, dayLong), true
	how := h.load(h.now())
	h.marks.version = h.now().UnixMilli()
	h.marks.add(Mark{At: h.now().UnixMilli(), Kind: Started, Text: "Curfew " + o.Version + " started" + how})
	return h
}

const (
	sampleEvery = time.Second
	// sampleShare is which part of the time sampling may take.
	sampleShare = 100
	// longestPause bounds the pause after a sample that had to wait, for a busy machine or a lock.
	longestPause = 3 * time.Second
	stateEvery   = 5 * time.Second
	saveEvery    = 5 * time.Minute
	// soon is after how long the file is written again if there is news, unless that took more than one part in sampleShare of the time.
	soon = 10 * time.Second
)

// Run samples until ctx ends, and saves then. It returns nil.
func (h *History) Run(ctx context.Context) error {
	defer func() {
		h.ending = true
		h.save()
	}()
	next := time.NewTimer(sampleEvery)
	defer next.Stop()
	states := time.NewTicker(stateEvery)
	defer states.Stop()
	for {
		select {
		case <-next.C:
			at := h.now()
			h.sample(at)
			took := h.now().Sub(at)
			next.Reset(max(h.now().Truncate(sampleEvery).Add(sampleEvery).Sub(h.now()), min((sampleShare-1)*took, longestPause)))
		case <-states.C:
			h.watch(h.State(), h.now())
			if h.isDue(h.now()) {
				h.save()
			} else {
				h.touch()
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// isDue reports whether the file is to be written.
func (h *History) isDue(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	after := saveEvery
	if h.news || h.marks.version != h.saved {
		after = min(after, max(soon, sampleShare*h.saveTook))
	}
	return now.Sub(h.savedAt) >= after
}

// sample takes a sample, and writes the seconds since the last one.
func (h *History) sample(at time.Time) {
	h.sampled = h.sampled[:0]
	totals := h.Queues(func(q *Queue) { h.sampled = append(h.sampled, *q) })
	h.askMeant()
	h.mu.Lock()
	defer h.mu.Unlock()
	second := at.Unix()
	if second <= h.last {
		return
	}
	h.total.gather(0, 0, totals.Published, totals.Delivered)
	for i := range h.sampled {
		h.sampleLocked(&h.sampled[i], second)
	}
	for _, s := range h.queues {
		if s.meant && s.Expired > 0 {
			s.asMeant(&h.total, second)
		}
	}
	since := second - h.last
	if h.last == 0 {
		since = 1
	}
	spread := min(since, maxSpread)
	if !h.run { // before this process there is nothing to spread over
		h.run, spread = true, 1
	}
	h.total.write(second, since, spread)
	for _, s := range h.queues {
		s.write(second, since, spread)
		// One that is gone is remembered after something last happened in it for as long as it lived.
		kept := min(max(s.seen-s.born, int64(keepAtLeast.Seconds())), int64(keep.Seconds()))
		if s.gone(second) && second-s.active > kept {
			delete(h.queues, [2]string{s.vhost, s.name})
		}
	}
	h.last = second
	clear(h.sampled) // names of queues that may be deleted
}

// askMeant asks for each queue in which something has expired since the last sample whether that is a loss. The answer may take a while, and nobody
// waits for it.
func (h *History) askMeant() {
	h.mu.Lock()
	var expired []*series
	for _, s := range h.queues {
		if s.Expired > 0 {
			expired = append(expired, s)
		}
	}
	h.mu.Unlock()
	for _, s := range expired {
		meant := h.Meant != nil && h.Meant(s.vhost, s.name)
		h.mu.Lock()
		s.meant = meant
		h.news = h.news || !meant
		h.mu.Unlock()
	}
}

// sampleLocked adds a queue.
func (h *History) sampleLocked(q *Queue, second int64) {
	h.total.depth += int64(q.Depth)
	h.total.atRisk += int64(q.AtRisk)
	s := h.queues[[2]string{q.VHost, q.Name}]
	if s == nil {
		if q.Depth == 0 && q.Published == 0 && q.Delivered == 0 {
			return
		}
		if s = h.addSeriesLocked(q.VHost, q.Name, second); s == nil {
			return
		}
	}
	s.seen = second
	s.gather(q.Depth, q.AtRisk, q.Published, q.Delivered)
	h.watchConsumersLocked(s, q, second)
	if s.depth > 0 || s.came > 0 || s.went > 0 || s.Expired > 0 {
		s.active = second
	}
}

// addSeriesLocked gives a queue a series; nil: too many queues have one.
func (h *History) addSeriesLocked(vhost, name string, second int64) *series {
	if len(h.queues) >= maxQueues {
		h.full = true
		if !h.evictLocked(second) {
			return nil
		}
	}
	s := &series{vhost: vhost, name: name, born: second, seen: second, active: second, rings: newRings(shortest), tolls: make(tolls, hourLong)}
	s.counting = !h.full // or its counts would cover a time in which it had no rings
	h.queues[[2]string{vhost, name}] = s
	return s
}

// evictEvery is how often idle queues are searched for, in seconds.
const evictEvery = 10

// evictLocked drops the series of a queue: of one that is gone if there is any, or else of the one that has been idle the longest, for
// idleBefore at least. It is false if there is none.
func (h *History) evictLocked(second int64) bool {
	if len(h.idle) == 0 && second-h.idleAt >= evictEvery {
		h.idleAt = second
		for _, s := range h.queues {
			if s.gone(second) || second-s.active >= int64(idleBefore.Seconds()) {
				h.idle = append(h.idle, s)
			}
		}
		slices.SortFunc(h.idle, func(a, b *series) int { // the best is the last
			if gone := a.gone(second); gone != b.gone(second) {
				if gone {
					return 1
				}
				return -1
			}
			return int(b.active - a.active)
		})
	}
	for len(h.idle) > 0 {
		s := h.idle[len(h.idle)-1]
		h.idle = h.idle[:len(h.idle)-1]
		if h.queues[[2]string{s.vhost, s.name}] == s && (s.gone(second) || second-s.active >= int64(idleBefore.Seconds())) {
			if h.evicted[s.vhost] == nil {
				h.evicted[s.vhost] = make(tolls, hourLong)
			}
			h.evicted[s.vhost].addAll(s.tolls, second)
			delete(h.queues, [2]string{s.vhost, s.name})
			return true
		}
	}
	return false
}
