package topology

// What tests outside the package look at.

const RoutesKept = routesKept

func (vh *VHost) Registry() *Registry { return vh.registry }

func (m *Memory) Used() int64 { return m.used.Load() }

func (vh *VHost) Claims() map[string]bool { return vh.guard.claims }

// EachPortion calls fn with the size of each portion, and whether the lock is free.
func (vh *VHost) EachPortion(fn func(n int, free bool)) {
	vh.Policies.eachPortion(func(list []governed) {
		free := vh.guard.mu.TryLock()
		if free {
			vh.guard.mu.Unlock()
		}
		fn(len(list), free)
	})
}

// Known is how many routes are remembered.
func (rs *Routes) Known() int { return len(rs.known) }

// Search finds the queues of a message, as one who remembers nothing.
func Search(vh *VHost, name, key []byte, by Sender, headers Headers, keys bool) ([]Target, error) {
	return (&Routes{vh: vh}).search(name, key, by, headers, keys)
}

const SweepStep = sweepStep

// Sweep removes the bindings of everything that has been deleted.
func (vh *VHost) Sweep() { vh.sweep() }

// BeginDeleteQueue and BeginDeleteExchange delete something and remove no more than some of its bindings, as if the process
// then stopped. more: others are left.
func BeginDeleteQueue(vh *VHost, name string) (more bool) {
	q, _ := vh.Queues.Get(name)
	_, _, _ = q.drop(nil)
	q.vh.registry.saveDeleted()
	return vh.leftToSweep()
}

func BeginDeleteExchange(vh *VHost, name string) (more bool) {
	_ = vh.guard.locked(func() error {
		vh.Exchanges.exchanges[name].removeLocked()
		return nil
	})
	return vh.leftToSweep()
}

func (vh *VHost) leftToSweep() bool {
	vh.guard.mu.RLock()
	defer vh.guard.mu.RUnlock()
	return len(vh.sweeps.left) > 0
}
