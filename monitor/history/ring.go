package history

// steps are the intervals of the rings, in seconds. Each is a multiple of the one before.
var steps = [...]int64{1, 10, 60}

// lengths are how many records the rings have. The first must be long enough for the second's step, and so on.
type lengths [len(steps)]int

// A queue's rings begin with the shortest lengths.
var (
	shortest     = lengths{10, 6, 2}
	queueLengths = lengths{60, 90, 24 * 60}
	totalLengths = lengths{15 * 60, 6 * 60, 24 * 60}
)

// rings are the rings of a queue, or of all. Interval n of a ring, counted from 1970, is at n modulo its length. Each ring of a queue doubles, up to
// its length in queueLengths, before it would overwrite an interval that is known.
type rings [len(steps)][]record

func newRings(l lengths) (r rings) {
	for level := range r {
		r[level] = make([]record, l[level])
	}
	return r
}

func (r *rings) record(level int, n int64) *record { return &r[level][n%int64(len(r[level]))] }

// put writes an interval. Those of a ring are written in order, without gaps.
func (r *rings) put(level int, n int64, one record) {
	*r.record(level, n) = one
	was := r[level]
	if len(was) >= queueLengths[level] || *r.record(level, n+1) == (record{}) {
		return
	}
	r[level] = make([]record, min(2*len(was), queueLengths[level]))
	for i := range int64(len(was)) {
		*r.record(level, n-i) = was[(n-i)%int64(len(was))]
	}
}

// write adds a second, and what it completes. Seconds are written in order, without gaps.
func (r *rings) write(second int64, p *Point) {
	r.put(0, second, recordOf(p))
	for level := 1; level < len(steps); level++ {
		if (second+1)%steps[level] != 0 {
			return
		}
		sum := r.sum(level, second/steps[level])
		r.put(level, second/steps[level], recordOf(&sum))
	}
}

// sum is an interval of a ring, made of the records of the one before.
func (r *rings) sum(level int, n int64) (sum Point) {
	share := steps[level] / steps[level-1]
	for i := range share {
		p := r.record(level-1, n*share+i).point()
		sum.add(&p)
	}
	return sum
}

// skip notes that nothing is known of the seconds from one up to another. Intervals that have begun before keep what they have.
func (r *rings) skip(from, to int64) {
	whole := steps[len(steps)-1]
	for ; from < to && from%whole != 0; from++ {
		r.write(from, &Point{})
	}
	for level, step := range steps {
		if to/step-from/step >= int64(max(len(r[level]), queueLengths[level])) {
			clear(r[level])
			continue
		}
		for n := from / step; n < to/step; n++ {
			r.put(level, n, record{})
		}
	}
}

// read appends the records of a ring from one interval up to another; what has left the ring is not known.
func (r *rings) read(level int, from, to, last int64, out []Point) []Point {
	oldest := last/steps[level] - int64(len(r[level]))
	for n := from; n < to; n++ {
		if n < 0 || n <= oldest || n > last/steps[level] {
			out = append(out, Point{})
			continue
		}
		out = append(out, r.record(level, n).point())
	}
	return out
}

// each calls fn with what happened in a span of whole minutes and the present one, up to the last second: first minutes, then what is left in
// tens of seconds, then in seconds.
func (r *rings) each(last, span int64, fn func(second int64, p *Point)) {
	end := last + 1
	from := end/steps[len(steps)-1]*steps[len(steps)-1] - span
	for level := len(steps) - 1; level >= 0; level-- {
		to := end / steps[level]
		for n, p := range r.read(level, from/steps[level], to, last, nil) {
			fn(from+int64(n)*steps[level], &p)
		}
		from = to * steps[level]
	}
}
