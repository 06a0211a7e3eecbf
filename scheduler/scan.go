package scheduler

import (
	"context"
	"maps"
	"slices"

	"curfew/broker/deadline"
)

// scanPage is how many waiting shadows one page of Scan has, at most.
const scanPage = 4096

// Scan calls fn with every shadow, each once, in pages that fn may change but not keep; fn
// may call the store. A shadow stored or removed during the scan may or may not be included.
// It ends with fn's first error, or that of ctx.
func (x *Index) Scan(ctx context.Context, fn func(page []deadline.Ref) error) error {
	x.mu.Lock()
	queues := slices.Collect(maps.Keys(x.queues))
	x.mu.Unlock()
	var page []deadline.Ref
	var last entry
	for len(queues) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, queues, last = x.scan(queues, last, page[:0])
		if len(page) == 0 {
			continue
		}
		if err := fn(page); err != nil {
			return err
		}
	}
	return nil
}

// scan appends shadows of the first queues, of the very first those that come after one, waiting or moved, up to the shadow it returns. It goes by the
// order of shadows, which no claim changes, so it misses none that moves to and fro.
func (x *Index) scan(queues []uint64, last entry, page []deadline.Ref) (_ []deadline.Ref, left []uint64, _ entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for looked := 0; len(queues) > 0 && looked < scanPage && len(page) < scanPage; looked++ {
		if q := x.queues[queues[0]]; q != nil {
			from, more := last, false
			q.waiting.after(from, func(e entry) bool {
				if more = len(page) == scanPage; !more {
					page, last = append(page, q.ref(e)), e
				}
				return !more
			})
			for _, l := range q.moved.Items {
				if e := (entry{l.Deadline, l.Seq}); from.before(e) && (!more || e.before(last)) {
					page = append(page, l.Ref)
				}
			}
			if more {
				break
			}
		}
		queues, last = queues[1:], entry{}
	}
	return page, queues, last
}
