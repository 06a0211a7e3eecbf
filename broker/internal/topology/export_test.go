package topology

import "curfew/broker/policy"

// What tests outside the package look at.

const RoutesKept = routesKept

func (vh *VHost) Registry() *Registry { return vh.registry }

func (m *Memory) Used() int64 { return m.used.Load() }

func (vh *VHost) Claims() map[string]bool { return vh.claims }

// Spent and Steps are what the policies of a kind cost, in all and for one queue.
func (vh *VHost) Spent(k policy.Kind) int { return vh.spent[k] }

func (q *Queue) Steps(k policy.Kind) int { return q.policies.Steps[k] }

// ChangeUnbounded puts a policy into force, however long it takes to match it. began is called once the change is under way.
func (vh *VHost) ChangeUnbounded(p policy.Policy, began func()) error {
	_, err := vh.changeGoverned(policy.Unbounded, func(sets *[2]policy.Set) *revision {
		began()
		sets[policy.User] = sets[policy.User].With(p)
		return &revision{}
	})
	return err
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
	q, _ := vh.Queue(name)
	_, _ = q.drop(func() error { return nil })
	q.vh.registry.saveDeleted()
	return vh.leftToSweep()
}

func BeginDeleteExchange(vh *VHost, name string) (more bool) {
	_ = vh.Mutate(func() error {
		vh.exchanges[name].removeLocked()
		return nil
	})
	return vh.leftToSweep()
}

func (vh *VHost) leftToSweep() bool {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	return len(vh.sweeps.left) > 0
}
