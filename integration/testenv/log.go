package testenv

import (
	"bytes"
	"sync"
)

// Log collects what a process writes while a test reads it. The zero value is empty. It is safe for concurrent use.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Reset empties it.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Reset()
}

// Tail returns its end, at most n bytes.
func (l *Log) Tail(n int) string {
	s := l.String()
	return s[max(0, len(s)-n):]
}
