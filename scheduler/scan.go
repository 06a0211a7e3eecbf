package scheduler

import (
	"context"

	"curfew/broker/deadline"
)

// scanPage is how many waiting shadows one page of Scan has, at most.
const scanPage = 4096

// Scan calls fn with every shadow, each once, in pages that fn may change but not keep; fn
// may call the store. A shadow stored or removed during the scan may or may not be included.
// It ends with fn's first error, or that of ctx.
func (s *Index) Scan(ctx context.Context, fn func(page []deadline.Ref) error) error {
	var page []deadline.Ref
	for last, more := (deadline.Ref{}), true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, last, more = s.scan(last, page[:0])
		if len(page) == 0 {
			continue
		}
		if err := fn(page); err != nil {
			return err
		}
	}
	return nil
}

// scan appends the shadows that come after one in order, waiting or moved, up to the
// shadow it returns. It goes by the order of shadows, which no claim changes, so it
// misses none that moves to and fro.
func (s *Index) scan(after deadline.Ref, page []deadline.Ref) (_ []deadline.Ref, last deadline.Ref, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	page = s.waiting.after(after, scanPage, page)
	if len(page) == scanPage {
		last, more = page[scanPage-1], true
	}
	for pos := range s.moved.len() {
		shadow := s.moved.at(*s.moved.heap.At(pos)).Ref
		if shadow.Compare(after) > 0 && (!more || shadow.Compare(last) <= 0) {
			page = append(page, shadow)
		}
	}
	return page, last, more
}
