package alert

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// maxIncidents bounds the incidents, and with them the groups. Events that find no room
	// are added up per Kind and Action under the queue "_other".
	maxIncidents = 1000
	// maxSingles bounds the messages that wait for a notification of their own.
	maxSingles = 1000
)

// tracker adds events up per incident, puts incidents into groups by the rules in force, and
// makes the notifications that are due. Safe for concurrent use.
type tracker struct {
	metrics  *metrics
	silences *silences
	signal   chan struct{} // a group is due sooner than the loop knows

	mu          sync.Mutex
	rules       []*rule
	rest        *rule // for events that none of rules matches
	singles     bool  // one of them makes every message a notification of its own
	singleRate  *rate.Limiter
	incidents   map[key]*incident
	groups      map[groupKey]*group
	unsent      []*notification // of single messages, and of incidents that left their group
	singleCount uint64          // notifications of single messages so far
	holdersAt   time.Time       // when it was last asked who holds messages
}

func newTracker(limit rate.Limit, s *silences) *tracker {
	return &tracker{
		silences:   s,
		signal:     make(chan struct{}, 1),
		singleRate: rate.NewLimiter(limit, burst),
		incidents:  make(map[key]*incident),
		groups:     make(map[groupKey]*group),
	}
}

func (t *tracker) wake() {
	select {
	case t.signal <- struct{}{}:
	default:
	}
}

// use puts rules in force, and each incident into the group that they give it. An incident that
// changes its group or sinks is reported as over to the old sinks if it was reported there.
func (t *tracker) use(rules []*rule, rest *rule) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rules, t.rest = rules, rest
	t.singles = slices.ContainsFunc(append(slices.Clone(rules), rest), func(r *rule) bool { return r.group == single })
	now := time.Now()
	groups := t.groups
	t.groups = make(map[groupKey]*group)
	for _, i := range t.incidents {
		old := i.group
		t.joinLocked(i, t.ruleOfLocked(i.key))
		if i.group.key == old.key && slices.Equal(i.group.rule.to, old.rule.to) && i.group.rule.everywhere == old.rule.everywhere {
			i.group.notifiedAt, i.group.nextAt = old.notifiedAt, old.nextAt
			continue
		}
		if i.notified {
			t.unsent = append(t.unsent, ended(old, i, now))
		}
		i.notified, i.notifiedCount = false, 0
	}
	if len(groups) > 0 {
		t.wake()
	}
}

// ended is the notification that i is over, in the group g that it leaves.
func ended(g *group, i *incident, now time.Time) *notification {
	n := newNotification(g.rule, g.key, now)
	over := i.alert(g.rule.severityOf(i.kind))
	over.endsAt, over.fresh = now, true
	n.add(over)
	return n
}

// record adds e to its incident.
func (t *tracker) record(e Event) {
	k := key{kind: e.Kind, vhost: e.VHost, queue: e.Queue, action: e.Action}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.singles && t.recordSingleLocked(k, e) {
		return
	}
	i, known := t.incidentLocked(k)
	if e.Again && known {
		e.Count = 0 // it is counted already
		i.WorstMillis = max(i.WorstMillis, e.WorstMillis)
	} else {
		i.merge(e.Stats)
	}
	i.lastAt, i.again = time.Now(), i.again || e.Again
}

// recordSingleLocked makes e a notification of its own if its rule wants that and the rate allows it.
func (t *tracker) recordSingleLocked(k key, e Event) bool {
	r := t.ruleOfLocked(k)
	if r.group != single || e.Again {
		return false
	}
	if !t.singleRate.Allow() || len(t.unsent) >= maxSingles {
		t.metrics.suppressed.WithLabelValues("rate_limit").Add(float64(e.Count))
		return false
	}
	now := time.Now()
	if t.silences.cover(k, now) {
		t.metrics.suppressed.WithLabelValues("silence").Add(float64(e.Count))
		return true
	}
	t.singleCount++
	n := newNotification(r, r.groupOf(k), now)
	n.single = t.singleCount
	n.add(alert{key: k, Stats: e.Stats, severity: r.severityOf(k.kind), startsAt: now, fresh: true})
	t.unsent = append(t.unsent, n)
	t.wake()
	return true
}

// each reports whether a rule may make every message of the queue a notification.
func (t *tracker) each(vhost, queue string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.singles {
		return false
	}
	for _, k := range []Kind{DeadlineMissed, DeadlineFiredLate, DeadLetterUnroutable, HeldPastDeadline} {
		if t.ruleOfLocked(key{kind: k, vhost: vhost, queue: queue}).group == single {
			return true
		}
	}
	return false
}

// begin records that a state has begun or still lasts, and what is known of it.
func (t *tracker) begin(k key, detail string, s Stats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.incidents[k] == nil && len(t.incidents) >= maxIncidents && k.queue != "" {
		t.metrics.suppressed.WithLabelValues("overflow").Inc() // its end could not be found
		return
	}
	i, _ := t.incidentLocked(k)
	i.state, i.lasts, i.detail, i.Stats, i.lastAt = true, true, detail, s, time.Now()
}

// end records that a state is over. That is sent at once, but no sooner after the last
// notification than the group waits: a state that comes and goes is not sent each time.
func (t *tracker) end(k key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.incidents[k]
	if i == nil || !i.lasts {
		return
	}
	i.lasts, i.lastAt, i.detail, i.Stats = false, time.Now(), "", Stats{}
	g := i.group
	if at := g.notifiedAt.Add(g.rule.wait); i.notified && at.After(i.lastAt) {
		g.nextAt = at
	} else {
		g.nextAt = i.lastAt
	}
	t.wake()
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
	i = &incident{key: k, startsAt: time.Now()}
	t.incidents[k] = i
	t.joinLocked(i, t.ruleOfLocked(k))
	return i, false
}

// ruleOfLocked returns the rule that applies to k.
func (t *tracker) ruleOfLocked(k key) *rule {
	if int(k.kind) < ruled {
		for _, r := range t.rules {
			if r.matches(k) {
				return r
			}
		}
	}
	return t.rest
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
		if !i.over(i.group.rule, now) {
			list = append(list, t.statusLocked(i, now))
		}
	}
	return list
}

func (t *tracker) statusLocked(i *incident, now time.Time) Status {
	r := i.group.rule
	a := i.alert(r.severityOf(i.kind))
	s := Status{
		Alertname: i.kind.String(), Event: kinds[i.kind].event, State: "pending", Severity: a.severity, Rule: r.name,
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
