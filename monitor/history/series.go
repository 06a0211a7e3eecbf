package history

import (
	"time"

	"curfew/broker/deadline"
)

// series is the history of a queue, or of all, with the interval that has not been written yet.
type series struct {
	rings
	vhost, name string
	born        int64 // the second in which it began
	seen        int64 // the last second in which the queue existed
	active      int64 // the last second in which something happened

	published, delivered uint64 // at the last sample
	counting             bool   // they are known
	consumers            consumers
	left                 string // the client that consumed last; "": not known
	leftAt               int64  // when, Unix s

	depth, atRisk int64
	came, went    int64
	deadline.Toll
	late     int64
	meant    bool // an expiry in the queue is no loss, when that was last asked
	worst    time.Duration
	tolls    tolls
	lateness [len(latenessUpTo) + 1]uint32
}

// tolls count what expired in each of the last minutes, the present one among them. Unlike the rings they count exactly, as incidents do.
type tolls []minuteToll

type minuteToll struct {
	Minute int64 // since 1970
	deadline.Toll
}

// hourLong and dayLong are how many minutes the tolls of a queue and those of all have.
const hourLong, dayLong = 60 + 1, 24*60 + 1

func (t tolls) add(second int64, toll deadline.Toll) {
	minute := second / 60
	at := &t[minute%int64(len(t))]
	if at.Minute != minute {
		*at = minuteToll{Minute: minute}
	}
	at.Add(toll)
}

// addAll adds what another has of its time.
func (t tolls) addAll(o tolls, second int64) {
	for i := range o {
		if second/60-o[i].Minute < int64(len(o)) {
			t.add(60*o[i].Minute, o[i].Toll)
		}
	}
}

// sum adds up what is not older than its time.
func (t tolls) sum(second int64) (all deadline.Toll) {
	for i := range t {
		if second/60-t[i].Minute < int64(len(t)) {
			all.Add(t[i].Toll)
		}
	}
	return all
}

// latenessUpTo are the upper bounds of what is counted to find the lateness of 99 in 100.
var latenessUpTo = [...]time.Duration{
	100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
}

// gather adds a sample of a queue. depth and atRisk are added up, for the history of all queues.
func (s *series) gather(depth, atRisk int, published, delivered uint64) {
	s.depth += int64(depth)
	s.atRisk += int64(atRisk)
	if s.counting {
		s.came += rise(s.published, published)
		s.went += rise(s.delivered, delivered)
	}
	s.published, s.delivered, s.counting = published, delivered, true
}

// rise is by how much a counter rose; one that is lower than before began again.
func rise(before, now uint64) int64 {
	if now < before {
		return int64(now)
	}
	return int64(now - before)
}

// gone reports whether the queue was not in the last sample.
func (s *series) gone(second int64) bool { return second-s.seen > 2*maxSpread }

// expire counts a message that expired.
func (s *series) expire(x *deadline.Expiry, second int64) {
	toll := deadline.Toll{Expired: 1}
	if x.Action == deadline.Dropped {
		toll.Dropped = 1
	}
	s.Add(toll)
	s.tolls.add(second, toll)
	if !x.Counts() {
		return
	}
	if x.Late() {
		s.late++
	}
	lateness := x.Lateness()
	s.worst = max(s.worst, lateness)
	i := 0
	for i < len(latenessUpTo) && lateness > latenessUpTo[i] {
		i++
	}
	s.lateness[i]++
}

// asMeant counts what expired in the queue since the last sample as meant.
func (s *series) asMeant(total *series, second int64) {
	meant := deadline.Toll{Meant: s.Expired, Dropped: -s.Dropped}
	for _, of := range []*series{s, total} {
		of.Add(meant)
		of.tolls.add(second, meant)
	}
}

// most is the lateness that 99 in 100 do not exceed.
func (s *series) most() time.Duration {
	total := uint64(0)
	for _, n := range s.lateness {
		total += uint64(n)
	}
	seen := uint64(0)
	for i, n := range s.lateness {
		if seen += uint64(n); i < len(latenessUpTo) && 100*seen >= 99*total {
			return min(latenessUpTo[i], s.worst)
		}
	}
	return s.worst
}

// write writes what has happened since the last sample, since seconds ago, spread over the last spread seconds.
func (s *series) write(second, since, spread int64) {
	if since > spread {
		s.skip(second-since+1, second-spread+1)
	}
	sum := Point{
		Known: true, Depth: s.depth, AtRisk: s.atRisk,
		Published: s.came, Delivered: s.went, Toll: s.Toll, Late: s.late, Lateness: s.most(),
	}
	for i := range spread {
		one := sum
		if spread > 1 {
			for _, n := range []*int64{&one.Published, &one.Delivered, &one.Expired, &one.Meant, &one.Dropped, &one.Late} {
				*n = *n*(i+1)/spread - *n*i/spread
			}
		}
		s.rings.write(second-spread+1+i, &one)
	}
	s.depth, s.atRisk, s.came, s.went, s.Toll, s.late, s.worst = 0, 0, 0, 0, deadline.Toll{}, 0, 0
	s.lateness = [len(s.lateness)]uint32{}
}

// Expired counts messages that expired. It is a subscriber of a deadline.Stream.
func (h *History) Expired(batch []deadline.Expiry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var at *series
	second := max(h.last, h.now().Unix()-1)
	for i := range batch {
		x := &batch[i]
		if x.Path == deadline.Scheduled { // not an expiry
			continue
		}
		h.total.expire(x, second)
		if at == nil || at.name != x.Queue || at.vhost != x.VHost {
			if at = h.queues[[2]string{x.VHost, x.Queue}]; at == nil && x.Queue != "" {
				at = h.addSeriesLocked(x.VHost, x.Queue, second)
			}
		}
		if at != nil {
			at.expire(x, second)
			at.active = second
		}
	}
}
