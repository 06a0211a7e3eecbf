package load

import "sync"

// window bounds how much may be under way; 0 bounds nothing.
type window struct {
	mu      sync.Mutex
	room    sync.Cond
	size    int
	enough  int // room that who waits is woken for
	taken   int
	waiting int
	closed  bool
}

func newWindow(size int) *window {
	w := &window{size: size, enough: 1}
	w.room.L = &w.mu
	return w
}

// newBacklog is a window whose waiters are woken when an eighth of it is free, not for
// every message: a producer and a consumer that hand each other single places wait for
// one another most of the time.
func newBacklog(size int) *window {
	w := newWindow(size)
	w.enough = max(1, size/8)
	return w
}

// take waits for room and takes up to most of it; 0 once the window is closed.
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
	if w.waiting > 0 && w.size-w.taken >= w.enough {
		w.room.Broadcast()
	}
}

func (w *window) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.room.Broadcast()
}
