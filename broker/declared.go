package broker

import (
	"sync/atomic"

	"curfew/broker/amqp"
)

// What queues, exchanges and bindings take in memory beside names and arguments, measured
// (TestWhatIsDeclaredIsCounted).
const (
	queueBytes    = 1300
	exchangeBytes = 500
	bindingBytes  = 300
)

// declared counts the memory that all virtual hosts take for what is declared in them. It
// may be half the memory limit, and while publishers wait for want of memory only a little
// more than it was then: what clients declare is not held back as publishes are, since
// consumers have to declare what they make room with.
type declared struct {
	most, slack int64 // 0: no bound
	used        atomic.Int64
	ceiling     atomic.Int64 // while memory is low; 0: it is not
}

// The least that may be declared, and that may be while memory is low, however small the limit.
const (
	leastDeclared = 512 << 10
	leastSlack    = 32 << 10
)

func (d *declared) init(memoryLimit int64) {
	if memoryLimit > 0 {
		d.most, d.slack = max(memoryLimit/2, leastDeclared), max(memoryLimit/32, leastSlack)
	}
}

// like has a copy of a broker count on from what the broker has, under its bounds.
func (d *declared) like(b *declared) {
	d.most, d.slack = b.most, b.slack
	d.used.Store(b.used.Load())
	d.ceiling.Store(b.ceiling.Load())
}

// low notes whether memory is low.
func (d *declared) low(is bool) {
	switch {
	case !is:
		d.ceiling.Store(0)
	case d.ceiling.Load() == 0:
		d.ceiling.Store(d.used.Load() + d.slack)
	}
}

// take counts n bytes more, unless that is too much: then it is false.
func (d *declared) take(n int64) bool {
	used := d.used.Add(n)
	if d.most == 0 || used <= d.most {
		if ceiling := d.ceiling.Load(); ceiling == 0 || used <= ceiling {
			return true
		}
	}
	d.used.Add(-n)
	return false
}

// declare counts what is about to be declared; label is for the error, 406. What must be,
// and what is restored, is counted and not refused. Called with mu held.
func (vh *VHost) declare(n int64, label string, must bool) error {
	d := &vh.b.declared
	if must || vh.restoring() {
		d.used.Add(n)
	} else if !d.take(n) {
		return amqp.NewException(amqp.PreconditionFailed, 0, 0,
			"no memory to declare %s: queues, exchanges and bindings take %d bytes of %d; delete some, shorten their arguments or raise the memory limit",
			label, d.used.Load(), d.most)
	}
	vh.footprint += n
	return nil
}

// undeclare counts what is not declared any more. Called with mu held. What a deleted
// virtual host had was given back with it.
func (vh *VHost) undeclare(n int64) {
	if vh.deleted {
		return
	}
	vh.footprint -= n
	vh.b.declared.used.Add(-n)
}

// undeclareAll is undeclare for all there is. Called with mu held.
func (vh *VHost) undeclareAll() {
	vh.b.declared.used.Add(-vh.footprint)
	vh.footprint = 0
}

func (q *Queue) footprint() int64 {
	return queueBytes + int64(len(q.name)) + q.declared.Args.Footprint()
}

func (x *Exchange) footprint() int64 {
	return exchangeBytes + int64(len(x.name)) + x.declared.Args.Footprint()
}

func bindingFootprint(key string, args amqp.Table) int64 {
	return bindingBytes + int64(len(key)) + args.Footprint()
}
