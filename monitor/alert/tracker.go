package alert

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// maxIncidents bounds the incidents. Events that find no room are added up per Kind under the
	// queue "_other".
	maxIncidents = 1000
	// perMinute bounds the notifications of what begins: so many at once, and so many a minute.
	// What is over is always sent.
	perMinute = 20
)

// tracker adds events up per incident, and makes the notifications that are due. Safe for
// concurrent use.
//
//	       event                1 s, and what the rule asks for
//	none ────────► collecting ──────────────────────────────────► notified ──► over, which is sent
//	                   │  ▲                  a silence, or too many at once         ▲
//	                   ▼  └────────────────────────────────────────────────┐        │ if it was notified
//	               withheld ───────────────────────────────────────────────┘────────┘
type tracker struct {
	metrics  *metrics
	silences *silences
	signal   chan struct{} // something is due sooner than the loop knows

	mu        sync.Mutex
	rules     []*rule
	rest      *rule // for events that none of rules matches
	limit     *rate.Limiter
	incidents map[key]*incident
	holdersAt time.Time // when it was last asked who holds messages
}

func newTracker(s *silences) *tracker {
	return &tracker{
		silences: s, signal: make(chan struct{}, 1), incidents: make(map[key]*incident),
		limit: rate.NewLimiter(rate.Every(time.Minute/perMinute), perMinute),
	}
}

func (t *tracker) wake() {
	select {
	case t.signal <- struct{}{}:
	default:
	}
}

// use puts rules in force, for all incidents that no sink has been notified of. The others keep
// the rule that they began with, so that whoever was sent the beginning is sent the end.
func (t *tracker) use(rules []*rule, rest *rule) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rules, t.rest = rules, rest
	for _, i := range t.incidents {
		if !i.notified {
			i.rule = t.ruleOfLocked(i.key)
		}
	}
	t.wake()
}

// record adds e to its incident.
func (t *tracker) record(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, known := t.incidentLocked(key{e.Kind, e.VHost, e.Queue})
	before := i.reached()
	i.add(e, known)
	if !before && i.reached() {
		t.wake()
	}
}

// begin records that a state has begun or still lasts, and what is known of it.
func (t *tracker) begin(k key, detail string, s Stats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.incidents[k] == nil && len(t.incidents) >= maxIncidents && k.queue != "" {
		t.metrics.suppressed.WithLabelValues("overflow").Inc() // its end could not be found
		return
	}
	t.beginLocked(k, detail, s)
	t.wake()
}

func (t *tracker) beginLocked(k key, detail string, s Stats) *incident {
	i, _ := t.incidentLocked(k)
	i.state, i.lasts, i.detail, i.Stats, i.lastAt = true, true, detail, s, time.Now()
	return i
}

// end records that a state is over.
func (t *tracker) end(k key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.incidents[k]; i != nil && i.lasts {
		i.lasts, i.lastAt, i.detail, i.Stats = false, time.Now(), "", Stats{}
		t.wake()
	}
}

// incidentLocked finds the incident of k or begins one.
func (t *tracker) incidentLocked(k key) (i *incident, known bool) {
	if i := t.incidents[k]; i != nil {
		return i, true
	}
	if len(t.incidents) >= maxIncidents && k.queue != "" {
		k.vhost, k.queue = otherQueues, otherQueues
		if i := t.incidents[k]; i != nil {
			return i, true
		}
	}
	i = &incident{key: k, rule: t.ruleOfLocked(k), startsAt: time.Now()}
	t.incidents[k] = i
	return i, false
}

// ruleOfLocked returns the rule that applies to k.
func (t *tracker) ruleOfLocked(k key) *rule {
	if int(k.kind) >= ruled {
		return everything
	}
	for _, r := range t.rules {
		if r.matches(k) {
			return r
		}
	}
	return t.rest
}

// due takes the notifications to send now, and returns how long to wait for the next.
func (t *tracker) due(now time.Time) (due []*alert, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next = reloadEvery
	var begun []*incident
	for k, i := range t.incidents {
		if i.over(now) {
			delete(t.incidents, k)
			if i.notified {
				due = append(due, i.ended(now))
			}
			continue
		}
		if !i.state {
			next = min(next, i.overAt().Sub(now))
		}
		settled := i.startsAt.Add(settle)
		switch {
		case i.notified || !i.reached():
		case t.silences.cover(k, now):
			t.withholdLocked(i, bySilence)
		case now.Before(settled):
			next = min(next, settled.Sub(now))
		default:
			begun = append(begun, i)
		}
	}
	slices.SortFunc(begun, worse)
	for n, i := range begun {
		if !t.limit.AllowN(now, 1) {
			due = append(due, t.withholdRestLocked(begun[n:], now)...)
			return due, min(next, time.Minute/perMinute)
		}
		i.notified = true
		due = append(due, i.alert(now))
	}
	if more := t.incidents[key{kind: ManyAlerts}]; more != nil {
		delete(t.incidents, more.key)
		due = append(due, more.ended(now))
	}
	return due, next
}

// withholdRestLocked notes that there are too many incidents to notify of each. The first time, a
// notification says how many more there are.
func (t *tracker) withholdRestLocked(list []*incident, now time.Time) []*alert {
	for _, i := range list {
		t.withholdLocked(i, byRate)
	}
	more := t.beginLocked(key{kind: ManyAlerts}, "", Stats{Count: int64(len(list))})
	if more.notified {
		return nil
	}
	more.notified = true
	return []*alert{more.alert(now)}
}

// withholdLocked counts an incident once for each reason.
func (t *tracker) withholdLocked(i *incident, why withheld) {
	if i.withheld != why {
		i.withheld = why
		t.metrics.suppressed.WithLabelValues(string(why)).Inc()
	}
}

// worse compares two incidents; the worse is the lower.
func worse(a, b *incident) int {
	severity := func(i *incident) int { return slices.Index(severities, i.rule.severityOf(i.kind)) }
	return cmp.Or(cmp.Compare(severity(a), severity(b)), cmp.Compare(kinds[a.kind].harm, kinds[b.kind].harm), cmp.Compare(b.count(), a.count()))
}

// remaining returns the incidents that no sink was notified of and should have been.
func (t *tracker) remaining(now time.Time) (list []*alert) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.incidents {
		if !i.notified && i.reached() && !i.over(now) {
			list = append(list, i.alert(now))
		}
	}
	return list
}

// firing returns what an Alertmanager is sent again and again: all that is bad enough and not
// silenced, since it has limits of its own.
func (t *tracker) firing(sink string) (list []*alert) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.incidents {
		settled := i.notified || i.reached() && now.Sub(i.startsAt) >= settle
		if settled && !i.over(now) && i.rule.sends(sink) && !t.silences.cover(i.key, now) {
			list = append(list, i.alert(now))
		}
	}
	return list
}

// countFiring counts the alerts that sinks were notified of and that are not over, by kind.
func (t *tracker) countFiring() (count [len(kinds)]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.incidents {
		if i.notified {
			count[i.kind]++
		}
	}
	return count
}

// list returns the state of each incident that is not over, in any order.
func (t *tracker) list(now time.Time) []Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := []Status{}
	for _, i := range t.incidents {
		if !i.over(now) {
			list = append(list, t.statusLocked(i, now))
		}
	}
	return list
}

func (t *tracker) statusLocked(i *incident, now time.Time) Status {
	a := i.alert(now)
	s := Status{
		Alertname: i.kind.String(), Event: kinds[i.kind].event, State: "pending", Severity: a.severity(), Rule: i.rule.name,
		Summary: a.summary(), Labels: a.labels(), Annotations: a.annotations(),
		StartsAt: i.startsAt.UTC(), LastAt: i.lastAt.UTC(),
		Finding: a.finding(), Links: i.links(), kind: i.kind, none: a.none(), count: a.Count,
	}
	switch {
	case t.silences.cover(i.key, now):
		s.State = "silenced"
	case i.notified:
		s.State = "firing"
	}
	return s
}

// inForce returns the rules in their order; the last is for events that no other matches.
func (t *tracker) inForce() []*rule {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(slices.Clone(t.rules), t.rest)
}
