package queue

import (
	"testing"
)

// The other tests lean on Check, so it has to notice what is wrong.
func TestCheckNotices(t *testing.T) {
	for name, damage := range map[string]func(q *Queue, l *priorityEntries, pg *page, c *chunk){
		"count of ready":         func(q *Queue, _ *priorityEntries, _ *page, _ *chunk) { q.Ready.Count++ },
		"bytes of unacked":       func(q *Queue, _ *priorityEntries, _ *page, _ *chunk) { q.Unacked.Bytes-- },
		"mark of the priority":   func(q *Queue, _ *priorityEntries, _ *page, _ *chunk) { q.ready[0] = 0 },
		"count of the priority":  func(_ *Queue, l *priorityEntries, _ *page, _ *chunk) { l.ready-- },
		"head behind the ready":  func(_ *Queue, l *priorityEntries, _ *page, _ *chunk) { l.head = 3 },
		"next below a number":    func(_ *Queue, l *priorityEntries, _ *page, _ *chunk) { l.next = 2 },
		"directory not trimmed":  func(_ *Queue, l *priorityEntries, _ *page, _ *chunk) { l.dir = append([]*page{nil}, l.dir...) },
		"ready bit of a chunk":   func(_ *Queue, _ *priorityEntries, pg *page, _ *chunk) { pg.ready[0] ^= 1 },
		"count in a chunk":       func(_ *Queue, _ *priorityEntries, pg *page, _ *chunk) { pg.counts[0]-- },
		"count of chunks":        func(_ *Queue, _ *priorityEntries, pg *page, _ *chunk) { pg.used++ },
		"ready bit of an entry":  func(_ *Queue, _ *priorityEntries, _ *page, c *chunk) { c.ready[0] ^= 2 },
		"count of entries":       func(_ *Queue, _ *priorityEntries, _ *page, c *chunk) { c.live++ },
		"spare in use":           func(q *Queue, _ *priorityEntries, _ *page, c *chunk) { q.spares.putChunk(c) },
		"spare page in use":      func(q *Queue, _ *priorityEntries, pg *page, _ *chunk) { q.spares.page = pg },
		"more spares than there": func(q *Queue, _ *priorityEntries, _ *page, _ *chunk) { q.spares.chunks = make([]*chunk, maxSpares+1) },
	} {
		q := New(unlimited)
		publish(q, 3)
		q.Take(1, &Effects{})
		if err := q.Check(); err != nil {
			t.Fatal(err)
		}
		l := &q.byPriority[0]
		damage(q, l, l.dir[0], l.dir[0].chunks[0])
		if q.Check() == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}
