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
	peer         string
}

// group is the incidents that are told together.
//
//	       first incident          wait              interval, and news:
//	none ─────────────────► waiting ─────► told ─┐◄─ another incident, ten times as
//	  ▲                                      │   │   many messages, one over, or the
//	  └──────── all over, which is told ─────┘◄──┘   repeat interval has passed
type group struct {
	key       groupKey
	rule      *rule
	incidents []*incident
	tellAt    time.Time // the next look at it
	toldAt    time.Time // zero: never
}

// join puts i into the group in which r has it told. Callers hold mu.
func (a *Alerts) join(i *incident, r *rule) {
	k := r.groupOf(i.key)
	g := a.groups[k]
	if g == nil {
		g = &group{key: k, rule: r, tellAt: time.Now().Add(r.wait)}
		a.groups[k] = g
		a.wake()
	}
	i.group = g
	g.incidents = append(g.incidents, i)
}

// step takes a group whose time has come one step on, and returns what is to be told:
// nil for nothing. Callers hold mu.
func (a *Alerts) step(g *group, now time.Time) *notification {
	n := newNotification(g.rule, g.key, now)
	news := false
	g.incidents = slices.DeleteFunc(g.incidents, func(i *incident) bool {
		told, gone := a.look(g, i, n, now)
		news = news || told
		return gone
	})
	g.tellAt = now.Add(g.rule.interval)
	if len(g.incidents) == 0 {
		delete(a.groups, g.key)
	}
	repeat := n.firing > 0 && now.Sub(g.toldAt) >= g.rule.repeat
	if !news && !repeat {
		return nil
	}
	g.toldAt = now
	for _, i := range g.incidents {
		if !i.silenced && i.reached(g.rule) {
			i.told, i.toldCount = true, i.Count
		}
	}
	n.close()
	return n
}

// look adds i to n, as it stands. gone says that it has ended.
func (a *Alerts) look(g *group, i *incident, n *notification, now time.Time) (news, gone bool) {
	if i.over(g.rule, now) {
		delete(a.incidents, i.key)
		if i.told {
			ended := i.alert(g.rule.severityOf(i.kind))
			ended.endsAt, ended.fresh = now, true
			n.add(ended)
		}
		return i.told, true
	}
	if !i.reached(g.rule) {
		return false, false
	}
	if silenced := a.silences.cover(i.key, now); silenced {
		if !i.silenced {
			a.metrics.suppressed.WithLabelValues("silence").Inc()
		}
		i.silenced = true
		return false, false
	}
	i.silenced = false
	news = i.news()
	n.add(i.alert(g.rule.severityOf(i.kind)))
	return news, false
}

// due takes what is to be told now, and how long the next will take.
func (a *Alerts) due(now time.Time) (due []*notification, next time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	due, a.untold = a.untold, nil
	next = reloadEvery
	for _, g := range a.groups {
		if !g.tellAt.After(now) {
			if n := a.step(g, now); n != nil {
				due = append(due, n)
			}
		}
		if len(g.incidents) > 0 {
			next = min(next, g.tellAt.Sub(now))
		}
	}
	return due, next
}

// remaining takes what has been recorded and not told, whether it is time or not.
func (a *Alerts) remaining(now time.Time) (rest []*notification) {
	a.mu.Lock()
	defer a.mu.Unlock()
	rest, a.untold = a.untold, nil
	for _, g := range a.groups {
		n := newNotification(g.rule, g.key, now)
		for _, i := range g.incidents {
			if (!i.told || !i.state && i.Count > i.toldCount) && i.reached(g.rule) && !i.over(g.rule, now) {
				n.add(i.alert(g.rule.severityOf(i.kind)))
				i.told, i.toldCount = true, i.Count
			}
		}
		if n.firing > 0 {
			n.close()
			rest = append(rest, n)
		}
	}
	return rest
}

// firing are the alerts that are told and not over, of those a sink is sent.
func (a *Alerts) firing(sink string) (alerts []alert) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, i := range a.incidents {
		r := i.group.rule
		if i.told && !i.over(r, now) && r.sends(sink) && !a.silences.cover(i.key, now) {
			alerts = append(alerts, i.alert(r.severityOf(i.kind)))
		}
	}
	return alerts
}
