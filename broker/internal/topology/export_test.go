package topology

// What tests outside the package look at.

const RoutesKept = routesKept

func (vh *VHost) Registry() *Registry { return vh.registry }

func (m *Memory) Used() int64 { return m.used.Load() }

func (vh *VHost) Claims() map[string]bool { return vh.claims }

// EachPortion calls fn with the size of each portion, and whether the lock is free.
func (vh *VHost) EachPortion(fn func(n int, free bool)) {
	vh.eachPortion(func(list []governed) {
		free := vh.mu.TryLock()
		if free {
			vh.mu.Unlock()
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
