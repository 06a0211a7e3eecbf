package topology

import (
	"sync/atomic"

	"curfew/broker/amqp"
	"curfew/broker/exchange"
)

// The memory that queues, exchanges and bindings take in addition to their names and arguments,
// measured (TestWhatIsDeclaredIsCounted).
const (
	queueBytes    = 1000
	exchangeBytes = 500
	bindingBytes  = 300
)

// Memory counts the memory that the queues, exchanges and bindings of all virtual hosts take.
// It may be half the memory limit, and while publishers are blocked because memory is low, only
// a little more than it was when that began: declares are not blocked as publishes are, since
// consumers, which make room, have to declare what they use.
type Memory struct {
	most, slack int64 // bytes; 0: no bound
	used        atomic.Int64
	ceiling     atomic.Int64 // while memory is low; 0 while it is not
}

// The least that may be declared, and the least more while memory is low, however small the limit.
const (
	leastDeclared = 512 << 10
	leastSlack    = 32 << 10
)

func (m *Memory) init(memoryLimit int64) {
	if memoryLimit > 0 {
		m.most, m.slack = max(memoryLimit/2, leastDeclared), max(memoryLimit/32, leastSlack)
	}
}

// Continue starts the count of a copied broker at that of the original, b, with the same bounds.
func (m *Memory) Continue(b *Memory) {
	m.most, m.slack = b.most, b.slack
	m.used.Store(b.used.Load())
	m.ceiling.Store(b.ceiling.Load())
}

// Low notes whether memory is low.
func (m *Memory) Low(low bool) {
	switch {
	case !low:
		m.ceiling.Store(0)
	case m.ceiling.Load() == 0:
		m.ceiling.Store(m.used.Load() + m.slack)
	}
}

// take counts n more bytes. It returns false and counts nothing if that is too much.
func (m *Memory) take(n int64) bool {
	used := m.used.Add(n)
	if m.most == 0 || used <= m.most {
		if ceiling := m.ceiling.Load(); ceiling == 0 || used <= ceiling {
			return true
		}
	}
	m.used.Add(-n)
	return false
}

// footprint is the part of Memory that one virtual host takes. Guarded by the virtual host's mu.
type footprint struct {
	all   *Registry
	bytes int64
	ended bool
}

// takeLocked counts n bytes that are about to be declared; label is for the error, 406. With must
// they are counted and never refused.
func (f *footprint) takeLocked(n int64, label string, must bool) error {
	m := &f.all.Memory
	if must {
		m.used.Add(n)
	} else if !m.take(n) {
		return amqp.NewException(amqp.PreconditionFailed, 0, 0,
			"no memory to declare %s: queues, exchanges and bindings take %d bytes of %d; delete some, shorten their arguments or raise the memory limit",
			label, m.used.Load(), m.most)
	}
	f.bytes += n
	return nil
}

// giveLocked gives n bytes back. A deleted virtual host has already given back all of its own.
func (f *footprint) giveLocked(n int64) {
	if f.ended {
		return
	}
	f.bytes -= n
	f.all.Memory.used.Add(-n)
}

// giveAllLocked gives all bytes back, when the virtual host is deleted.
func (f *footprint) giveAllLocked() {
	f.all.Memory.used.Add(-f.bytes)
	f.bytes, f.ended = 0, true
}

func (q *Queue) footprint() int64 {
	return queueBytes + int64(len(q.Name)) + q.Declared().Args.Footprint()
}

func (x *Exchange) footprint() int64 {
	return exchangeBytes + int64(len(x.name)) + x.declared.Args.Footprint()
}

func bindingFootprint(key string, args amqp.Table) int64 {
	return bindingBytes + int64(len(key)) + args.Footprint() + exchange.SQLFootprint(args)
}
