package load

import "sync"

// window bounds how much may be under way; 0 bounds nothing.
type window struct {
	mu     sync.Mutex
	room   sync.Cond
	size   int
	taken  int
	closed bool
}

func newWindow(size int) *window {
	w := &window{size: size}
	w.room.L = &w.mu
	return w
}

// take waits for room and takes up to most of it; 0 once the window is closed.
func (w *window) take(most int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.size > 0 && w.taken >= w.size && !w.closed {
		w.room.Wait()
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
	w.room.Broadcast()
}

func (w *window) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.room.Broadcast()
}
