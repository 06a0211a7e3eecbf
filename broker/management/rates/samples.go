package rates

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"curfew/broker/management/rest"
)

// Bounds of the histories of counts.
const (
	maxHistories = 32  // things; the one that was not requested for longest is dropped
	maxKept      = 120 // samples of a thing, at least sampleEvery apart
	maxSamples   = 500 // steps in an answer, as in RabbitMQ
)

// history has a thing's counts at each sample since they were first requested, the oldest
// first.
type history struct {
	asked int // when it was last requested, counted in requests
	at    []time.Time
	seen  []Sampled
}

func (h *history) add(at time.Time, s Sampled) {
	if len(h.at) == maxKept {
		h.at, h.seen = append(h.at[:0], h.at[1:]...), append(h.seen[:0], h.seen[1:]...)
	}
	h.at, h.seen = append(h.at, at), append(h.seen, s)
}

// value returns the count of a name at an instant; false: it is not known.
func (h *history) value(name string, at time.Time) (n uint64, known bool) {
	for i := len(h.at) - 1; i >= 0; i-- {
		if !h.at[i].After(at) {
			return h.seen[i].of(name), true
		}
	}
	return 0, false
}

// rememberLocked adds the newest sample to the histories, and drops those of things that no
// longer exist.
func (r *Rates) rememberLocked() {
	for key, h := range r.histories {
		if s, there := r.newer.seen[key]; there {
			h.add(r.newer.at, s)
		} else {
			delete(r.histories, key)
		}
	}
}

// historyLocked returns the history of a thing. A new one begins with the two samples that
// exist.
func (r *Rates) historyLocked(key any) *history {
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
		r.makeRoomLocked()
		r.histories[key] = h
	}
	r.questions++
	h.asked = r.questions
	return h
}

// makeRoomLocked makes room for one more history.
func (r *Rates) makeRoomLocked() {
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

// span is how far back samples are requested, and at which distance.
type span struct{ age, incr time.Duration }

// Spans has the spans that a query requests, by their prefixes: lengths, msg_rates, data_rates.
type Spans map[string]span

// ReadSpans reads a query. A value that is not a number counts as missing, as in RabbitMQ.
func ReadSpans(v url.Values) (Spans, error) {
	asked := Spans{}
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
			return nil, rest.Bad(fmt.Sprintf("Invalid range parameters: age %d, incr %d", age, incr))
		}
		asked[prefix] = span{time.Duration(age) * time.Second, time.Duration(incr) * time.Second}
	}
	return asked, nil
}

// taken is a sample in an answer.
type taken struct {
	Sample    uint64 `json:"sample"`
	Timestamp int64  `json:"timestamp"` // Unix ms
}

// Samples adds the samples that the query requests under a prefix to the details in o, which has
// the counts of a thing. The newest sample, which is o's own, is the first.
func (r *Rates) Samples(o rest.Object, key any, asked Spans, prefix string, names ...string) {
	s, wanted := asked[prefix]
	if !wanted {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h, now := r.historyLocked(key), r.now()
	for _, name := range names {
		details, there := o[name+"_details"].(rest.Object)
		current, counted := rest.Number(o[name])
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

// averages returns the mean of the samples and their change per second.
func averages(list []taken) (avg, perSecond rest.Rate) {
	var sum float64
	for _, one := range list {
		sum += float64(one.Sample)
	}
	newest, oldest := list[0], list[len(list)-1]
	if took := newest.Timestamp - oldest.Timestamp; took > 0 {
		perSecond = rest.Rate((float64(newest.Sample) - float64(oldest.Sample)) * 1000 / float64(took))
	}
	return rest.Rate(sum / float64(len(list))), perSecond
}

// MessageCounts are the counts under the prefix lengths.
var MessageCounts = []string{"messages", "messages_ready", "messages_unacknowledged"}

// StatSamples adds samples of everything in message_stats.
func (r *Rates) StatSamples(o rest.Object, key any, asked Spans) {
	stats, _ := o["message_stats"].(rest.Object)
	var names []string
	for name, v := range stats {
		if _, counted := rest.Number(v); counted {
			names = append(names, name)
		}
	}
	r.Samples(stats, key, asked, "msg_rates", names...)
}
