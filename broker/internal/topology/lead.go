package topology

import "curfew/broker/exchange"

// Version rises when queues, exchanges or bindings of the virtual host have changed, or settings of its queues.
func (vh *VHost) Version() uint64 { return vh.version.Load() + vh.Policies.applied.Load() }

// deadLetterWay is where dead letters go. The key counts only where they are bound by equal keys.
type deadLetterWay struct{ exchange, key string }

// DeadLetterTargets are, for each queue with a dead-letter exchange, the queues that bindings of that exchange lead to, itself perhaps among
// them: all of them where the exchange does not go by the key alone, or where each letter keeps its own key. Queues whose letters go the
// same way share a slice. It costs a step for each queue and for each exchange that it is bound to, and no lock is held for long.
func (vh *VHost) DeadLetterTargets() map[*Queue][]*Queue {
	all := vh.Queues.all()
	from, ways := map[*Queue]deadLetterWay{}, map[deadLetterWay][]*Queue{}
	vh.guard.mu.RLock()
	defer vh.guard.mu.RUnlock()
	p := exchange.Pace{Pause: vh.guard.pause}
	for _, q := range all {
		p.Step(1)
		name, key, ok := q.DeadLettersTo()
		if !ok {
			continue
		}
		x := vh.Exchanges.exchanges[name]
		if x != nil && x.kind != exchange.Direct {
			key = ""
		}
		w := deadLetterWay{name, key}
		from[q] = w
		if _, known := ways[w]; !known {
			ways[w] = vh.byKeyLocked(x, w, &p)
		}
	}
	for _, q := range all {
		for x := range q.sources {
			p.Step(1)
			w := deadLetterWay{exchange: x.name}
			if list, wanted := ways[w]; wanted && !q.gone && !x.gone {
				ways[w] = append(list, q)
			}
		}
	}
	targets := make(map[*Queue][]*Queue, len(from))
	for q, w := range from {
		targets[q] = ways[w]
	}
	return targets
}

// byKeyLocked finds the queues that a way with a key leads to. x is its exchange; nil: the default one, or it does not exist.
func (vh *VHost) byKeyLocked(x *Exchange, w deadLetterWay, p *exchange.Pace) (list []*Queue) {
	switch {
	case w.key == "":
	case w.exchange == "":
		if q := vh.Queues.queues[w.key]; q != nil {
			list = append(list, q)
		}
	case x != nil:
		for _, d := range x.router.Route([]byte(w.key), nil, nil, p) {
			if d.queue != nil && !d.queue.gone {
				list = append(list, d.queue)
			}
		}
	}
	return list
}
