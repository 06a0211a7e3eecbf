package deadletters

import (
	"context"

	"curfew/broker"
	"curfew/broker/queue"
)

const (
	// pageCount and pageBytes bound what is held of a queue at a time; a larger body is
	// held alone.
	pageCount = 256
	pageBytes = 1 << 20
	// noBody is how much of a body is read where nobody asked for it.
	noBody = 0
)

// walk calls fn with each ready message of q behind after that m matches, in the order
// of delivery and with bodyBytes of its body (<0 all), until fn returns false. Progress
// is told after each page: the last message looked at, and how many were.
func walk(ctx context.Context, q *broker.Queue, after queue.Seq, m *matcher, bodyBytes int, fn func(*Letter) bool, progress func(last queue.Seq, seen int)) error {
	whole := bodyBytes
	if m.reads() {
		whole = -1
	}
	for {
		page, err := q.Browse(broker.Browse{After: after, Count: pageCount, State: queue.Ready, BodyBytes: whole, Bytes: pageBytes})
		if err != nil || len(page) == 0 {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range page {
			l := letterOf(&page[i])
			if !m.matches(&l) {
				continue
			}
			if bodyBytes >= 0 && len(l.Body) > bodyBytes {
				l.Body = l.Body[:bodyBytes]
			}
			if !fn(&l) {
				return nil
			}
		}
		after = page[len(page)-1].Seq
		if progress != nil {
			progress(after, len(page))
		}
	}
}

// Search returns up to most dead letters of q behind after (0: from the head) that f
// matches, with bodyBytes of each body. next is where to go on: the last one found, or 0
// when the queue has been looked through.
func Search(ctx context.Context, q *broker.Queue, f *Filter, after queue.Seq, most, bodyBytes int) (found []Letter, next queue.Seq, err error) {
	m, err := f.compile()
	if err != nil {
		return nil, 0, err
	}
	err = walk(ctx, q, after, m, bodyBytes, func(l *Letter) bool {
		if len(found) == most {
			next = found[most-1].Seq
			return false
		}
		found = append(found, *l)
		return true
	}, nil)
	return found, next, err
}

// Count is how many ready messages of q the filter matches.
func Count(ctx context.Context, q *broker.Queue, f *Filter) (n int, err error) {
	m, err := f.compile()
	if err != nil {
		return 0, err
	}
	err = walk(ctx, q, 0, m, noBody, func(*Letter) bool { n++; return true }, nil)
	return n, err
}
