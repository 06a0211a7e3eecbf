package alert

import (
	"slices"
	"time"
)

// groupKey identifies a group.
type groupKey struct {
	rule         string
	kind         Kind
	vhost, queue string // empty: all
}

// group is the incidents of one notification.
//
//	       first incident          wait              interval, and news:
//	none ─────────────────► waiting ─────► sent ─┐◄─ another incident, ten times as
//	  ▲                                      │   │   many messages, one over, or the
//	  └──────── all over, which is sent ─────┘◄──┘   repeat interval has passed
type group struct {
	key        groupKey
	rule       *rule
	incidents  []*incident
	nextAt     time.Time // when stepLocked is due
	notifiedAt time.Time // zero: never
}

// joinLocked puts i into its group by the rule r.
func (t *tracker) joinLocked(i *incident, r *rule) {
	k := r.groupOf(i.key)
	g := t.groups[k]
	if g == nil {
		g = &group{key: k, rule: r, nextAt: time.Now().Add(r.wait)}
		t.groups[k] = g
		t.wake()
	}
	i.group = g
	g.incidents = append(g.incidents, i)
}

// stepLocked brings a group that is due up to date, and returns the notification to send; nil
// for none.
func (t *tracker) stepLocked(g *group, now time.Time) *notification {
	n := newNotification(g.rule, g.key, now)
	news := false
	g.incidents = slices.DeleteFunc(g.incidents, func(i *incident) bool {
		isNews, gone := t.addIncidentLocked(g, i, n, now)
		news = news || isNews
		return gone
	})
	g.nextAt = now.Add(g.rule.interval)
	if len(g.incidents) == 0 {
		delete(t.groups, g.key)
	}
	repeat := n.firing > 0 && now.Sub(g.notifiedAt) >= g.rule.repeat
	if !news && !repeat {
		return nil
	}
	g.notifiedAt = now
	for _, i := range g.incidents {
		if !i.silenced && i.reached(g.rule) {
			i.notified, i.notifiedCount = true, i.count()
		}
	}
	n.close()
	return n
}

// addIncidentLocked adds i to n as it is now. gone is true if it has ended.
func (t *tracker) addIncidentLocked(g *group, i *incident, n *notification, now time.Time) (news, gone bool) {
	if i.over(g.rule, now) {
		delete(t.incidents, i.key)
		if i.notified {
			ended := i.alert(g.rule.severityOf(i.kind))
			ended.endsAt, ended.fresh = now, true
			n.add(ended)
		}
		return i.notified, true
	}
	if !i.reached(g.rule) {
		return false, false
	}
	if silenced := t.silences.cover(i.key, now); silenced {
		if !i.silenced {
			t.metrics.suppressed.WithLabelValues("silence").Inc()
		}
		i.silenced = true
		return false, false
	}
	i.silenced = false
	news = i.news()
	n.add(i.alert(g.rule.severityOf(i.kind)))
	return news, false
}

// due takes the notifications to send now, and returns how long to wait for the next.
func (t *tracker) due(now time.Time) (due []*notification, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	due, t.unsent = t.unsent, nil
	next = reloadEvery
	for _, g := range t.groups {
		if !g.nextAt.After(now) {
			if n := t.stepLocked(g, now); n != nil {
				due = append(due, n)
			}
		}
		if len(g.incidents) > 0 {
			next = min(next, g.nextAt.Sub(now))
		}
	}
	return due, next
}

// remaining takes everything that has been recorded and not sent, due or not.
func (t *tracker) remaining(now time.Time) (rest []*notification) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rest, t.unsent = t.unsent, nil
	for _, g := range t.groups {
		n := newNotification(g.rule, g.key, now)
		for _, i := range g.incidents {
			if (!i.notified || !i.state && i.count() > i.notifiedCount) && i.reached(g.rule) && !i.over(g.rule, now) {
				n.add(i.alert(g.rule.severityOf(i.kind)))
				i.notified, i.notifiedCount = true, i.count()
			}
		}
		if n.firing > 0 {
			n.close()
			rest = append(rest, n)
		}
	}
	return rest
}

// firing returns the alerts that a sink was notified of and that are not over.
func (t *tracker) firing(sink string) (alerts []alert) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.incidents {
		r := i.group.rule
		if i.notified && !i.over(r, now) && r.sends(sink) && !t.silences.cover(i.key, now) {
			alerts = append(alerts, i.alert(r.severityOf(i.kind)))
		}
	}
	return alerts
}
