package deliveries

import (
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// Page appends to out the unacked deliveries behind a tag, some thousand of them, and returns
// where to go on; 0 is where it begins. There are no more if it appends none.
func (d *Deliveries) Page(after uint64, out []Unacked) (_ []Unacked, next uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unacked.page(after, out)
}

func (r *ring) page(after uint64, out []Unacked) (_ []Unacked, next uint64) {
	for t, m := range r.from(after + 1) {
		if m.Queue != nil {
			out = append(out, *m)
		}
		if after = t; len(out) == 4*ringLarge {
			break
		}
	}
	return out, after
}

// Deadlines returns the deadlines of a page as they are now; 0: none. The page must be sorted by
// queue, so that each queue is asked once.
func Deadlines(page []Unacked) (all []deadline.Instant) {
	var seqs []queue.Seq
	for i, m := range page {
		seqs = append(seqs, m.Seq)
		if i+1 == len(page) || page[i+1].Queue != m.Queue {
			all, seqs = m.Queue.Messages.DeadlinesOf(seqs, all), seqs[:0]
		}
	}
	return all
}
