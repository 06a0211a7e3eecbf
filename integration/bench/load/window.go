package load

import "sync"

// window bounds how much may be outstanding; 0 means no bound.
type window struct {
	mu      sync.Mutex
	room    sync.Cond
	size    int
	wakeAt  int // waiters are woken when there is this much room
	taken   int
	waiting int
	closed  bool
}

func newWindow(size int) *window {
	w := &window{size: size, wakeAt: 1}
	w.room.L = &w.mu
	return w
}

// newBacklog returns a window that wakes its waiters when an eighth of it is free, and not
// for every message: a producer and a consumer that hand each other one place at a time
// spend most of the time waiting for each other.
func newBacklog(size int) *window {
	w := newWindow(size)
	w.wakeAt = max(1, size/8)
	return w
}

// take waits for room, takes it up to most, and returns how much; 0 once the window is
// closed.
func (w *window) take(most int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.size > 0 && w.taken >= w.size && !w.closed {
		w.waiting++
		w.room.Wait()
		w.waiting--
	}
	if w.closed {
		return 0
	}
	if w.size > 0 {
		most = min(most, w.size-w.taken)
	}
	w.taken += most
	return most
}

func (w *window) give(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken -= n
	if w.waiting > 0 && w.size-w.taken >= w.wakeAt {
		w.room.Broadcast()
	}
}

func (w *window) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.room.Broadcast()
}
