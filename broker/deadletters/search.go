package deadletters

import (
	"context"
	"errors"
	"slices"

	"curfew/broker"
	"curfew/broker/queue"
)

const (
	// pageCount and pageBytes bound how much of a queue is in memory at a time; a larger body
	// is there alone.
	pageCount = 256
	pageBytes = 1 << 20
)

// ErrRedeclared is returned for messages named by their numbers in a queue that is gone.
var ErrRedeclared = errors.New("the queue was deleted and declared again since it was read; read it again")

// Look is where a walk over a queue begins and which way it goes, and how much of each message it shows.
type Look struct {
	After     queue.Seq // the message before the first; 0: from the head, or with Newest from the tail
	Newest    bool      // the newest first, against the order of delivery
	Count     int       // of a search: at most
	BodyBytes int       // of each body; <0 all
	Position  Position  // leaves out what arrived after it; none: what arrived after the search began

	brief bool // of the headers, those about deaths and replays are enough
}

// walk calls fn with each ready message of q on the way that m matches, until fn returns
// false. After each page it calls progress with the last message examined, and the number of
// messages examined on the page.
func walk(ctx context.Context, q *broker.Queue, w Look, m *matcher, fn func(*Letter) bool, progress func(last queue.Seq, seen int)) error {
	look := broker.Browse{After: w.After, FromTail: w.Newest, Count: pageCount, State: queue.Ready, BodyBytes: w.BodyBytes, Bytes: pageBytes}
	if m.whole {
		look.BodyBytes = -1
	}
	wants := m.wants // most of the time goes into headers, where messages have many
	if m.everyHeader || m.program == nil && !w.brief {
		wants = nil
	}
	next := func() ([]broker.Browsed, error) { return q.Messages.Browse(look) }
	if m.seqs != nil {
		left := w.remaining(m.seqs)
		next = func() (page []broker.Browsed, _ error) {
			page, left = pick(q, left, look.BodyBytes)
			return page, nil
		}
	}
	for {
		page, err := next()
		if err != nil || len(page) == 0 {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		read := func(n int) {
			if progress != nil && n > 0 {
				progress(page[n-1].Seq, n)
			}
		}
		for i := range page {
			if i > 0 && m.whole && ctx.Err() != nil { // reading bodies takes long, packed ones most of all
				read(i)
				return ctx.Err()
			}
			if late := !w.Position.includes(page[i].Seq); late && !w.Newest && page[i].Seq.Priority() == 0 {
				read(i)
				return nil // the rest is later still; a queue may grow as fast as it is read
			} else if late {
				continue
			}
			l := LetterOf(&page[i], wants)
			if !m.matches(&l) {
				continue
			}
			if wants != nil && !w.brief {
				l = LetterOf(&page[i], nil)
			}
			if w.BodyBytes >= 0 && len(l.Message.Body) > w.BodyBytes {
				l.Message.Body = l.Message.Body[:w.BodyBytes]
			}
			if !fn(&l) {
				return nil
			}
		}
		look.After = page[len(page)-1].Seq
		read(len(page))
	}
}

// remaining returns the messages that are still to come on the way, out of seqs in the order of
// delivery.
func (w *Look) remaining(seqs []queue.Seq) []queue.Seq {
	list := slices.Clone(seqs)
	if w.Newest {
		slices.Reverse(list)
	}
	if w.After == 0 {
		return list
	}
	return slices.DeleteFunc(list, func(s queue.Seq) bool {
		if w.Newest {
			return delivered(s, w.After) >= 0
		}
		return delivered(s, w.After) <= 0
	})
}

// pick reads a page of messages by their numbers; left are the numbers after it.
func pick(q *broker.Queue, seqs []queue.Seq, bodyBytes int) (page []broker.Browsed, left []queue.Seq) {
	bytes := 0
	for i, s := range seqs {
		if len(page) == pageCount || bytes >= pageBytes {
			return page, seqs[i:]
		}
		if x, ok := q.Messages.BrowseOne(s, bodyBytes); ok && x.State == queue.Ready {
			page = append(page, x)
			bytes += len(x.Message.Body) + len(x.Message.Properties)
		}
	}
	return page, nil
}

// Search returns dead letters of q that f matches. next is where to continue: after the last one found, or 0 at the end of the queue. When ctx
// ends it returns what it has found, with ctx's error; then next is the last message that was examined.
func Search(ctx context.Context, q *broker.Queue, f Filter, look Look) (found []Letter, next queue.Seq, err error) {
	m, err := look.Position.on(q, f)
	if err != nil {
		return nil, 0, err
	}
	seen := look.After
	err = walk(ctx, q, look, m, func(l *Letter) bool {
		if len(found) == look.Count {
			next = found[look.Count-1].Seq
			return false
		}
		found = append(found, *l)
		return true
	}, func(last queue.Seq, _ int) { seen = last })
	if err != nil && ctx.Err() != nil {
		next = seen
	}
	return found, next, err
}

// At returns the message of q with that number, ready or held by a consumer, with bodyBytes of its body (<0 all). False: it is gone.
func At(q *broker.Queue, seq queue.Seq, bodyBytes int) (l Letter, ok bool) {
	x, ok := q.Messages.BrowseOne(seq, bodyBytes)
	if ok {
		l = LetterOf(&x, nil)
	}
	return l, ok
}
