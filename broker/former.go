package broker

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"curfew/broker/deadline"
)

// FormerRoute is a key by which messages went to a durable queue that clients consumed, until somebody deleted the queue, and those published
// since that reach no queue at all.
type FormerRoute struct {
	Exchange, Key, Queue string
	Deleted              time.Time
	deadline.Repeat
}

const (
	// maxFormer bounds the former routes of a virtual host. What is deleted beyond that is not watched.
	maxFormer = 1000
	// formerFor is for how long one is watched to which nobody publishes, if there are too many.
	formerFor = time.Hour
)

// Former are the former routes of a virtual host. Safe for concurrent use.
type Former struct {
	any atomic.Bool // all is not empty: publishers whose messages nobody wants do not wait for one another
	mu  sync.Mutex
	all map[[2]string]*FormerRoute // by exchange and key
}

func (f *Former) add(exchange, key string, q *Queue) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[[2]string]*FormerRoute{}
	}
	if len(f.all) >= maxFormer {
		maps.DeleteFunc(f.all, func(_ [2]string, r *FormerRoute) bool {
			return time.Since(r.Deleted) > formerFor && time.Since(r.Last) > formerFor
		})
	}
	if len(f.all) < maxFormer {
		f.any.Store(true)
		f.all[[2]string{exchange, key}] = &FormerRoute{Exchange: exchange, Key: key, Queue: q.Name, Deleted: time.Now()}
	}
}

// unrouted notes a message that reached no queue.
func (f *Former) unrouted(exchange, key []byte) {
	if !f.any.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.all[[2]string{string(exchange), string(key)}]; r != nil {
		r.Add(time.Now())
	}
}

// List returns those by which messages have been published since.
func (f *Former) List() (list []FormerRoute) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.all {
		if r.Count > 0 {
			list = append(list, *r)
		}
	}
	return list
}
