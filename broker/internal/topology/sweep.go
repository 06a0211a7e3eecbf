package topology

import (
	"strings"

	"curfew/broker/exchange"
)

// sweepStep is how many bindings are removed while the lock is held once: about half a millisecond.
const sweepStep = 256

// sweepSync is after how many of these steps they are saved. Other definitions wait for what is saved with them.
const sweepSync = 16

// sweeps are queues and exchanges that have been removed and still have bindings, to them or from them. Nobody sees those
// any more; removing them takes as long as they are many. Until then nothing of that name is declared, so that whatever
// a crash leaves of them on disk is not taken for bindings of a later queue or exchange: a start drops bindings
// whose ends are missing. Guarded by the virtual host's mu.
type sweeps struct {
	vh   *VHost
	left []destination
}

// addLocked adds what has just been removed, unless the virtual host is deleted as a whole.
func (s *sweeps) addLocked(d destination) {
	if s.vh.guard.deleted {
		return
	}
	s.left = append(s.left, d)
	if d.durable() && s.vh.guard.catalog.Saving.Load() {
		s.vh.guard.claims[d.definitionKey()] = true
	}
}

// stepLocked removes bindings, no more than most, and reports whether there are others.
func (s *sweeps) stepLocked(most int) (more bool) {
	for most > 0 && len(s.left) > 0 {
		d := s.left[0]
		if n := d.unbindSomeLocked(most); n > 0 {
			most -= n
			continue
		}
		s.left[0] = destination{}
		s.left = s.left[1:]
		if d.durable() && s.vh.guard.catalog.Saving.Load() {
			delete(s.vh.guard.claims, d.definitionKey())
			s.vh.guard.unclaimed.Broadcast()
		}
	}
	return len(s.left) > 0
}

// sweep removes the bindings of everything that has been removed.
func (vh *VHost) sweep() {
	for more, steps := true, 1; more; steps++ {
		vh.guard.lock()
		more = vh.sweeps.stepLocked(sweepStep)
		vh.guard.unlock()
		if steps%sweepSync == 0 || !more {
			_ = vh.guard.catalog.Sync() // whoever waits for the end of it finds out
		}
	}
}

// sweepSoon is sweep for callers that others wait for.
func (vh *VHost) sweepSoon() {
	vh.guard.mu.RLock()
	more := len(vh.sweeps.left) > 0
	vh.guard.mu.RUnlock()
	if more {
		vh.registry.run(vh.sweep)
	}
}

// mutateAndSweep is Mutate for changes after which bindings may have to be swept.
func (vh *VHost) mutateAndSweep(fn func() error) error {
	more := false
	err := vh.guard.locked(func() error {
		err := fn()
		more = vh.sweeps.stepLocked(sweepStep)
		return err
	})
	if err != nil {
		return err
	}
	if more {
		vh.sweep()
	}
	return vh.guard.catalog.Sync()
}

// BeginImport blocks all other changes of the virtual host but deletions until end is called. A caller that
// locks several does so in the order of their names.
func (vh *VHost) BeginImport() (end func()) {
	vh.guard.importing.Lock()
	vh.sweep()
	return vh.guard.importing.Unlock
}

// unbindSomeLocked removes bindings of d, which has been removed, to it or from it: one at least if there are any, and
// no more than most.
func (d destination) unbindSomeLocked(most int) (n int) {
	bound := *d.sourcesLocked()
	for x := range bound {
		for _, b := range x.router.UnbindSome(d, most) {
			x.unboundLocked(b)
			n++
			exact := x.kind == exchange.Direct || x.kind == exchange.Topic && !strings.ContainsAny(b.Key, "*#")
			if exact && d.queue != nil && d.queue.marks.Load()&missed != 0 && x.vh.former != nil {
				x.vh.former(x.name, b.Key, d.queue)
			}
		}
		if bound[x] == 0 {
			x.autoDeleteLocked()
		}
		return n
	}
	if x := d.exchange; x != nil {
		x.router.Each(func(b exchange.Binding[destination]) bool {
			d = b.Destination
			return false
		})
		for _, b := range x.router.UnbindSome(d, most) {
			x.unboundLocked(b)
			n++
		}
	}
	return n
}

// goneLocked reports whether the queue or exchange has been removed.
func (d destination) goneLocked() bool {
	if d.queue != nil {
		return d.queue.gone
	}
	return d.exchange.gone
}

func (d destination) definitionKey() string {
	if d.queue != nil {
		return d.queue.definition().Key()
	}
	return d.exchange.definition().Key()
}
