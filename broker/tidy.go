package broker

import (
	"runtime/debug"
	"sync"
	"time"
)

// tidyAfter is how long a queue is empty before it gives back the memory that it
// keeps for messages to come. One that is emptied and filled all the time keeps it.
const tidyAfter = time.Second

// tidyMany of them, at once or one after the other, are worth a collection of garbage: a
// process that has become idle has none by itself for two minutes.
const tidyMany = 1000

// tidier remembers the queues that were emptied. Its timer runs only while there
// are any, so an idle broker does nothing.
type tidier struct {
	mu      sync.Mutex // leaf
	emptied []*Queue
	shrunk  int // since the last collection
	stopped bool
}

// emptied has the tidier look at q later. Called with q.mu held, after messages
// have left.
func (q *Queue) emptied() {
	if q.core.Len() > 0 || q.untidy {
		return
	}
	q.untidy = true
	q.vh.b.tidier.add(q)
}

func (t *tidier) add(q *Queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.emptied) == 0 && !t.stopped {
		time.AfterFunc(tidyAfter, t.tidy)
	}
	t.emptied = append(t.emptied, q)
}

// stop lets a timer that is set come to nothing.
func (t *tidier) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped, t.emptied = true, nil
}

// tidy looks at every queue that was emptied; those in use since come up again.
func (t *tidier) tidy() {
	t.mu.Lock()
	queues := t.emptied
	t.emptied = nil
	t.mu.Unlock()
	shrunk := 0
	for _, q := range queues {
		if q.tidy() {
			shrunk++
		}
	}
	if t.due(shrunk) {
		debug.FreeOSMemory()
	}
}

// due counts queues that gave memory back, and says whether it is time to collect it.
func (t *tidier) due(shrunk int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shrunk += shrunk; t.shrunk < tidyMany {
		return false
	}
	t.shrunk = 0
	return true
}

// tidy says whether q had been left alone and gave its memory back.
func (q *Queue) tidy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.untidy = false
	switch {
	case q.deleted || q.core.Len() > 0: // it comes up when it is emptied
	case q.vh.b.Now()-q.usedAt < tidyAfter.Microseconds():
		q.emptied()
	default:
		q.core.Shrink()
		q.endFlow()
		return true
	}
	return false
}
