package topology

import "curfew/broker/exchange"

// Version rises when queues, exchanges or bindings of the virtual host have changed, or settings of its queues.
func (vh *VHost) Version() uint64 { return vh.version.Load() + vh.Policies.applied.Load() }

// deadLetterWay is where dead letters go. The key counts only where they are bound by equal keys.
type deadLetterWay struct{ exchange, key string }

// deadLetterWays are the targets of each way.
type deadLetterWays map[deadLetterWay]*TargetSet

// DeadLetterTargets are, for each queue with a dead-letter exchange, the queues that its letters without headers would go to, itself perhaps
// among them, and, where each letter keeps its own key, all queues that are bound to the exchange. Queues whose letters go the same way share
// a slice. It costs a search for each way, and a step for each queue and for each exchange that it is bound to. No lock is held for long.
func (vh *VHost) DeadLetterTargets() map[*Queue][]*Queue {
	all := vh.Queues.all()
	ways := deadLetterWays{}
	from := ways.find(vh, all)
	r := Routes{vh: vh}
	for w, to := range ways {
		found, _ := r.search([]byte(w.exchange), []byte(w.key), ByNobody, Headers{}, false) // none without the exchange
		to.AddAll(found)
	}
	ways.addBound(vh, all)
	lists := make(map[deadLetterWay][]*Queue, len(ways))
	for w, to := range ways {
		for _, t := range to.List {
			lists[w] = append(lists[w], t.Queue)
		}
	}
	targets := make(map[*Queue][]*Queue, len(from))
	for q, w := range from {
		targets[q] = lists[w]
	}
	return targets
}

// find adds the ways of those queues that have a dead-letter exchange, still without targets.
func (ways deadLetterWays) find(vh *VHost, all []*Queue) (from map[*Queue]deadLetterWay) {
	from = map[*Queue]deadLetterWay{}
	vh.guard.mu.RLock()
	defer vh.guard.mu.RUnlock()
	p := exchange.Pace{Pause: vh.guard.pause}
	for _, q := range all {
		p.Step(1)
		name, key, ok := q.DeadLettersTo()
		if !ok {
			continue
		}
		if x := vh.Exchanges.exchanges[name]; x != nil && x.kind != exchange.Direct && x.kind != exchange.Topic {
			key = ""
		}
		w := deadLetterWay{name, key}
		if from[q] = w; ways[w] == nil {
			ways[w] = new(TargetSet)
		}
	}
	return from
}

// addBound adds the queues that are bound to an exchange to which letters go with their own keys.
func (ways deadLetterWays) addBound(vh *VHost, all []*Queue) {
	vh.guard.mu.RLock()
	defer vh.guard.mu.RUnlock()
	p := exchange.Pace{Pause: vh.guard.pause}
	for _, q := range all {
		for x := range q.sources {
			p.Step(1)
			if to := ways[deadLetterWay{exchange: x.name}]; to != nil && !q.gone && !x.gone {
				to.add(Target{Queue: q})
			}
		}
	}
}
