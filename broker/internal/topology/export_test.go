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
