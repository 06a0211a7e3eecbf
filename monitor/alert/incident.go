package alert

import "time"

// key identifies an incident.
type key struct {
	kind                 Kind
	vhost, queue, action string
	peer                 string // the silent instance
}

// otherQueues stands for every queue that found no room among the incidents.
const otherQueues = "_other"

// incident is what happened to one queue, or a state that lasts, since it began.
type incident struct {
	key
	Tally           // since it began; of a state, at present
	lasts    bool   // a state that has not ended
	state    bool   // it ends when that is said, not when nothing happens
	detail   string // of a state, in words
	startsAt time.Time
	lastAt   time.Time // the last event

	group     *group
	told      bool  // that it fires; so that it ends has to be told, too
	toldCount int64 // then
	silenced  bool  // it would be told
}

// over says that the incident has ended by now.
func (i *incident) over(r *rule, now time.Time) bool {
	if i.state {
		return !i.lasts
	}
	return now.Sub(i.lastAt) >= r.quiet(i.kind)
}

// reached says that it is grave enough to be told.
func (i *incident) reached(r *rule) bool {
	if i.state && i.Count == 0 {
		return true
	}
	return i.Count >= r.count && (r.lateness == 0 || lateness(i.WorstMillis) >= r.lateness)
}

// growth is by which factor an incident that is told must have grown to be told again
// before the repeat interval is over: a storm of a million is told seven times at most.
const growth = 10

// news says that what was last told is not the picture any more.
func (i *incident) news() bool {
	return !i.told || !i.state && i.Count >= growth*max(i.toldCount, 1)
}

// alert is i as it is told.
func (i *incident) alert(severity string) alert {
	return alert{key: i.key, Tally: i.Tally, detail: i.detail, severity: severity, startsAt: i.startsAt, fresh: i.news()}
}

// Record adds e to its incident. It takes constant time, waits for nothing and does
// not allocate if the incident is known.
func (a *Alerts) Record(e Event) {
	if a == nil || e.Count == 0 {
		return
	}
	k := key{kind: e.Kind, vhost: e.VHost, queue: e.Queue, action: e.Action}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.singles && a.recordSingle(k, e) {
		return
	}
	i, known := a.incident(k)
	if e.Again && known {
		e.Count = 0 // it is counted already
		i.WorstMillis = max(i.WorstMillis, e.WorstMillis)
	} else {
		i.merge(e.Tally)
	}
	i.lastAt = time.Now()
}

// recordSingle tells e for itself if its rule wants that and the rate allows it.
// Callers hold mu.
func (a *Alerts) recordSingle(k key, e Event) bool {
	r := a.ruleOf(k)
	if r.group != single || e.Again {
		return false
	}
	if !a.singleRate.Allow() || len(a.untold) >= maxSingles {
		a.metrics.suppressed.WithLabelValues("rate_limit").Add(float64(e.Count))
		return false
	}
	now := time.Now()
	if a.silences.cover(k, now) {
		a.metrics.suppressed.WithLabelValues("silence").Add(float64(e.Count))
		return true
	}
	a.told++
	n := newNotification(r, r.groupOf(k), now)
	n.single = a.told
	n.add(alert{key: k, Tally: e.Tally, severity: r.severityOf(k.kind), startsAt: now, fresh: true})
	a.untold = append(a.untold, n)
	a.wake()
	return true
}

// Each says that a rule may have every message of the queue told for itself, so that
// its events should be recorded one by one. On a nil Alerts it is false.
func (a *Alerts) Each(vhost, queue string) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.singles {
		return false
	}
	for _, k := range []Kind{DeadlineMissed, DeadlineFiredLate, DeadLetterUnroutable, HeldPastDeadline} {
		if a.ruleOf(key{kind: k, vhost: vhost, queue: queue}).group == single {
			return true
		}
	}
	return false
}

// incident finds that of k or begins one. Callers hold mu.
func (a *Alerts) incident(k key) (i *incident, known bool) {
	if i := a.incidents[k]; i != nil {
		return i, true
	}
	if len(a.incidents) >= maxIncidents && k.queue != "" {
		k.vhost, k.queue = otherQueues, otherQueues
		if i := a.incidents[k]; i != nil {
			return i, true
		}
	}
	i = &incident{key: k, startsAt: time.Now()}
	a.incidents[k] = i
	a.join(i, a.ruleOf(k))
	return i, false
}

// ruleOf is the rule that takes k. Callers hold mu.
func (a *Alerts) ruleOf(k key) *rule {
	if int(k.kind) < ruled {
		for _, r := range a.rules {
			if r.matches(k) {
				return r
			}
		}
	}
	return a.rest
}
