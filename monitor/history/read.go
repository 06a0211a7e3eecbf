package history

import (
	"slices"
	"time"

	"curfew/broker/deadline"
)

// Request says what to read.
type Request struct {
	// VHost and Queue name a queue; both empty: all queues together.
	VHost, Queue string
	// Span is how far back to go: at most a day.
	Span time.Duration
	// Points is the most points to return, made by adding up neighbours; 0: all, at most 1,440. They begin at round times, unless it is 1.
	Points int
	// Marks is the version of the marks that the reader has: they are left out unless there are others now. 0: it has none.
	Marks int64
	// Partial includes the last point even if its time is not over.
	Partial bool
}

// Read is the history of a queue, or of all.
type Read struct {
	// From is the beginning of the first point and Step the length of each, Unix seconds and seconds.
	From, Step int64
	Points     []Point
	// Marks are those of the span, the earliest first; for one queue, without those about other queues or virtual hosts; nil: the reader has them.
	Marks []Mark
	// Version is that of the marks.
	Version int64
	// Known is false for a queue without a history of its own; Full says that this is because there are too many queues.
	Known, Full bool
}

// Read returns what is known of a span. All points are in the past: the interval that has not ended is left out.
func (h *History) Read(r Request) (out Read) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.total
	if r.VHost != "" || r.Queue != "" {
		if s = h.queues[[2]string{r.VHost, r.Queue}]; s == nil {
			out.Full = h.full
			s = &series{}
		}
	}
	last := max(h.last, h.now().Unix()-maxSpread)
	span := min(max(int64(r.Span.Seconds()), steps[1]), int64(keep.Seconds()))
	level := 0
	lengths := totalLengths
	if s != &h.total {
		lengths = queueLengths
	}
	for level < len(steps)-1 && int64(lengths[level])*steps[level] < span {
		level++
	}
	step := steps[level]
	to := (last + 1) / step
	from := to - span/step
	out.From, out.Step, out.Known = from*step, step, s.rings[0] != nil
	if out.Known {
		out.Points = s.read(level, from, to, h.last, make([]Point, 0, to-from))
	}
	out.merge(r.Points, r.Partial)
	if out.Version = h.marks.version; out.Version == r.Marks {
		return out
	}
	out.Marks = []Mark{}
	for _, m := range h.marks.list {
		if m.At >= out.From*1000 && m.of(r.VHost, r.Queue) {
			m.Page = m.page()
			out.Marks = append(out.Marks, m)
		}
	}
	slices.SortStableFunc(out.Marks, func(a, b Mark) int { return int(a.At - b.At) })
	return out
}

// of reports whether the mark belongs to the history of a queue, or of all ("").
func (m *Mark) of(vhost, queue string) bool {
	if queue == "" {
		return true
	}
	return (m.VHost == "" || m.VHost == vhost) && (m.Queue == queue || m.Queue == "" && m.Queues == 0 || slices.Contains(m.Named, queue))
}

// merge adds up neighbours, so that there are at most as many points as most says.
func (r *Read) merge(most int, partial bool) {
	if most <= 0 || len(r.Points) <= most {
		return
	}
	n := (len(r.Points) + most - 1) / most
	step := r.Step * int64(n)
	skip := int((step - r.From%step) % step / r.Step) // to the next round time
	if most == 1 {
		skip = 0 // or nothing would be left
	}
	merged := r.Points[:0]
	for part := range slices.Chunk(r.Points[skip:], n) {
		if len(part) < n && !partial {
			break
		}
		sum := Point{}
		for i := range part {
			sum.add(&part[i])
		}
		merged = append(merged, sum)
	}
	r.From += int64(skip) * r.Step
	r.Points, r.Step = merged, step
}

// Rates are how many messages a second came to a queue in the last minute, and left it for its clients.
func (h *History) Rates(vhost, queue string) (in, out float64) {
	read, known := h.Read(Request{VHost: vhost, Queue: queue, Span: time.Minute}), 0
	for i := range read.Points {
		if p := &read.Points[i]; p.Known {
			in, out, known = in+float64(p.Published), out+float64(p.Delivered), known+1
		}
	}
	seconds := float64(max(int64(known)*read.Step, 1))
	return in / seconds, out / seconds
}

// Depths returns the depth of a queue in each of the last minutes, up to a day, the oldest first, the present one last; nil if it has no
// history. A minute of which nothing is known is -1.
func (h *History) Depths(vhost, queue string, minutes int) []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.queues[[2]string{vhost, queue}]
	if s == nil {
		return nil
	}
	depths, first := slices.Repeat([]int64{-1}, minutes), (h.last+1)/60-int64(minutes)+1
	s.each(h.last, int64(minutes-1)*60, func(second int64, p *Point) {
		if at := &depths[second/60-first]; p.Known {
			*at = max(*at, p.Depth)
		}
	})
	return depths
}

// ExpiredInADay is what expired in the last 24 hours, to the minute.
func (h *History) ExpiredInADay() deadline.Toll {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total.tolls.sum(h.last)
}

// ExpiredInAnHour is what expired in the last hour, to the minute, in the queues that have a history, and without the name of a queue, in those of
// a virtual host that were deleted and have none any more.
func (h *History) ExpiredInAnHour() deadline.Hour {
	h.mu.Lock()
	defer h.mu.Unlock()
	hour := make(deadline.Hour, len(h.queues))
	for of, s := range h.queues {
		hour[of] = s.tolls.sum(h.last)
	}
	for vhost, one := range h.evicted {
		if of := one.sum(h.last); of.Expired > 0 {
			hour[[2]string{vhost, ""}] = of
		} else {
			delete(h.evicted, vhost)
		}
	}
	return hour
}
