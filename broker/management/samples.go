package management

import (
	"fmt"
	"strconv"
	"time"
)

// Bounds of what is kept for those who ask how a thing's counts went.
const (
	maxHistories = 32  // things; of those the one nobody asked about for longest goes
	maxKept      = 120 // samples of a thing, sampleEvery apart or more
	maxSamples   = 500 // steps in an answer, as in RabbitMQ
)

// history is what a thing had counted at the samples taken since somebody first asked for
// them, the oldest first.
type history struct {
	asked int // when somebody asked last, counted in questions
	at    []time.Time
	seen  []sampled
}

func (h *history) add(at time.Time, s sampled) {
	if len(h.at) == maxKept {
		h.at, h.seen = append(h.at[:0], h.at[1:]...), append(h.seen[:0], h.seen[1:]...)
	}
	h.at, h.seen = append(h.at, at), append(h.seen, s)
}

// value is what was counted under name at an instant; false: nothing is known of then.
func (h *history) value(name string, at time.Time) (n uint64, known bool) {
	for i := len(h.at) - 1; i >= 0; i-- {
		if !h.at[i].After(at) {
			return h.seen[i].of(name), true
		}
	}
	return 0, false
}

// remember adds the newest sample to the histories there are. Of what has gone nothing is
// kept. Called with mu held.
func (r *rates) remember() {
	for key, h := range r.histories {
		if s, there := r.newer.seen[key]; there {
			h.add(r.newer.at, s)
		} else {
			delete(r.histories, key)
		}
	}
}

// history is that of a thing; one that nobody has asked about begins with the two samples
// there are. Called with mu held.
func (r *rates) history(key any) *history {
	h := r.histories[key]
	if h == nil {
		h = new(history)
		for _, s := range []*sample{r.older, r.newer} {
			if s == nil {
				continue
			}
			if seen, there := s.seen[key]; there {
				h.add(s.at, seen)
			}
		}
		r.makeRoom()
		r.histories[key] = h
	}
	r.questions++
	h.asked = r.questions
	return h
}

// makeRoom has room for one more history; called with mu held.
func (r *rates) makeRoom() {
	if len(r.histories) < maxHistories {
		return
	}
	var last any
	for key, h := range r.histories {
		if last == nil || h.asked < r.histories[last].asked {
			last = key
		}
	}
	delete(r.histories, last)
}

// span is for how long back samples are asked for, and how far apart.
type span struct{ age, incr time.Duration }

// spans are what a query asks for by its prefixes: lengths, msg_rates, data_rates.
type spans map[string]span

// spans reads the query. What is not a number asks for nothing, as in RabbitMQ.
func (q *request) spans() (spans, error) {
	asked, v := spans{}, q.URL.Query()
	for _, prefix := range []string{"lengths", "msg_rates", "data_rates", "node_stats"} {
		age, err := strconv.ParseInt(v.Get(prefix+"_age"), 10, 32)
		if err != nil {
			continue
		}
		incr, err := strconv.ParseInt(v.Get(prefix+"_incr"), 10, 32)
		if err != nil {
			continue
		}
		if age <= 0 || incr <= 0 || age/incr > maxSamples {
			return nil, bad(fmt.Sprintf("Invalid range parameters: age %d, incr %d", age, incr))
		}
		asked[prefix] = span{time.Duration(age) * time.Second, time.Duration(incr) * time.Second}
	}
	return asked, nil
}

// taken is a sample as it is answered.
type taken struct {
	Sample    uint64 `json:"sample"`
	Timestamp int64  `json:"timestamp"` // Unix ms
}

// samples adds to the details in o, whose counts are those of a thing, what the query asks
// for by the prefix: the newest sample first, which is o's own.
func (q *request) samples(o object, key any, asked spans, prefix string, names ...string) {
	s, wanted := asked[prefix]
	if !wanted {
		return
	}
	r := &q.api.rates
	r.mu.Lock()
	defer r.mu.Unlock()
	h, now := r.history(key), q.api.Now()
	for _, name := range names {
		details, there := o[name+"_details"].(object)
		current, counted := number(o[name])
		if !there || !counted {
			continue
		}
		list := []taken{{uint64(current), now.UnixMilli()}}
		for back := s.incr; back <= s.age; back += s.incr {
			n, known := h.value(name, now.Add(-back))
			if !known {
				break
			}
			list = append(list, taken{n, now.Add(-back).UnixMilli()})
		}
		details["samples"] = list
		details["avg"], details["avg_rate"] = averages(list)
	}
}

// averages are the mean of the samples and their change a second.
func averages(list []taken) (avg, perSecond rate) {
	var sum float64
	for _, one := range list {
		sum += float64(one.Sample)
	}
	newest, oldest := list[0], list[len(list)-1]
	if took := newest.Timestamp - oldest.Timestamp; took > 0 {
		perSecond = rate((float64(newest.Sample) - float64(oldest.Sample)) * 1000 / float64(took))
	}
	return rate(sum / float64(len(list))), perSecond
}

// messageCounts are what the prefix lengths asks for.
var messageCounts = []string{"messages", "messages_ready", "messages_unacknowledged"}

// statSamples are samples of all that is in message_stats.
func (q *request) statSamples(o object, key any, asked spans) {
	stats, _ := o["message_stats"].(object)
	var names []string
	for name, v := range stats {
		if _, counted := number(v); counted {
			names = append(names, name)
		}
	}
	q.samples(stats, key, asked, "msg_rates", names...)
}
