package incident

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"curfew/broker/deadline"
)

const (
	// together is how many incidents of a condition with the same cause are kept apart. What begins later joins the newest of them.
	together = 5
	// maxOpen is how many of a condition there may be at all.
	maxOpen = 100
	// growth is by how much the size of an incident must have grown for another notification: what it is about now or, if that is more, what is lost.
	growth = 10
	// maxRecent is how many incidents that are over are kept.
	maxRecent = 100
	// restoredFor is how long an incident of an earlier run may stay unseen after the start, unless Condition.Returns is longer.
	restoredFor = 5 * time.Second
)

// tracker makes incidents of what is found. Safe for concurrent use.
//
//	        found                 found for Condition.Begins           not found for Condition.Ends
//	none ──────────► seen ──────────────────────────────────► open ──────────────────────────────────► over
type tracker struct {
	mu      sync.Mutex
	rules   []*rule // the last matches every incident
	source  source
	all     []*incident
	recent  []Incident // over, the newest first
	ended   []*notice  // of them, for resolveFor, the newest first
	windows []Window
	changed bool // since it was saved
	savedAt time.Time
	retryAt time.Time // when a save that failed is tried again

	lookedAt  time.Time
	hour      deadline.Hour       // at the last look
	forecasts []deadline.Forecast // likewise
	published atomic.Pointer[View]
}

// View is what one look found. It never changes and must not be changed, so all that is shown of it is of one moment, and whoever reads it does
// not wait for the judgement of a large Curfew.
type View struct {
	At     time.Time             // of the look; zero: there was none
	Open   []Incident            // that are not over, the worst first
	Over   []Incident            // the last ones that are, the newest first
	Queues map[QueueName]Concern // those of Open
	Hour   deadline.Hour         // counted when the incidents were, so their tolls agree with it
	// Forecasts are those that the incidents were judged by, those first that lose messages sooner; nil: they are not known.
	Forecasts []deadline.Forecast

	windows []Window // also those that have ended since
	rules   []*rule
	source  source
}

// view returns what is shown.
func (t *tracker) view() *View { return cmp.Or(t.published.Load(), &View{}) }

// publishLocked shows what changed.
func (t *tracker) publishLocked() {
	open, queues := t.openLocked()
	t.published.Store(&View{t.lookedAt, open, t.recent, queues, t.hour, t.forecasts, t.windows, t.rules, t.source})
}

// use puts rules in force, for incidents of which nobody was told, so that whoever was told the beginning is told the end.
func (t *tracker) use(s settings) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rules, t.source = s.rules, s.source
	for _, i := range t.all {
		i.Runbook = t.source.runbook(i.Alertname)
		if i.ToldAt == "" {
			i.rule = nil
		}
	}
	t.recent = slices.Clone(t.recent) // views keep the one before
	for n := range t.recent {
		t.recent[n].Runbook = t.source.runbook(t.recent[n].Alertname)
	}
	t.publishLocked()
}

// step takes what is found now in a state, and returns what is to be told.
func (t *tracker) step(now time.Time, s *State) (due []*notice) {
	found := Evaluate(s)
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.publishLocked()
	t.lookedAt, t.hour, t.forecasts = now.UTC(), s.hour, s.Forecasts
	for _, c := range Conditions {
		for _, f := range found[c] {
			t.incidentLocked(c, f, found, now).add(f, now)
		}
	}
	kept := t.all[:0]
	for _, i := range t.all {
		i.refresh(now)
		t.ruleLocked(i)
		switch {
		case !i.open && i.gone.IsZero() && now.Sub(i.seen) >= i.of.Begins:
			i.begin(now)
			t.changed = true
		case i.open && !i.gone.IsZero() && (i.into != nil && i.into.open || now.Sub(i.gone) >= t.patience(i)):
			due = append(due, t.endLocked(i, now)...)
			continue
		case !i.open && !i.gone.IsZero():
			continue
		}
		kept = append(kept, i)
		if i.open {
			due = append(due, t.tellLocked(i, now)...)
		}
	}
	clear(t.all[len(kept):])
	t.all = kept
	return due
}

func (t *tracker) patience(i *incident) time.Duration {
	if i.restored && !i.of.OfOneRun {
		return max(i.of.Ends, i.of.Returns, restoredFor)
	}
	return i.of.Ends
}

// incidentLocked is the one that a finding belongs to. Findings of one cause that begin together are one incident, and so are all, if
// Condition.PerCause says so, or if there are many. What becomes of the messages of a queue (Condition.Loss) goes on in one incident: it becomes one
// of the other condition, or is over if there is one already.
func (t *tracker) incidentLocked(c *Condition, f Finding, found map[*Condition][]Finding, now time.Time) *incident {
	var newest, any, before *incident
	ofCause, all := 0, 0
	for _, i := range t.all {
		if _, is := i.members[f.QueueName]; i.of == c {
			all++
			any = i
			if i.Cause != f.Cause {
				continue
			}
			if is {
				return i
			}
			newest = i
			ofCause++
		} else if is && i.open && i.of.Loss && c.Loss && !slices.ContainsFunc(found[i.of], func(o Finding) bool { return o.QueueName == f.QueueName && i.has(o) }) {
			before = i
		}
	}
	i, alone := any, before != nil && !slices.ContainsFunc(found[before.of], before.has) // nothing else of it is found
	switch {
	case newest != nil && (c.PerCause || !newest.open || ofCause >= together):
		i = newest
	case alone && t.becomeLocked(before, c, f, now):
		return before
	case all < maxOpen:
		i = &incident{members: make(map[QueueName]Finding), seen: now}
		t.nameLocked(i, c, f)
		t.all = append(t.all, i)
	}
	if alone {
		before.into = i
	}
	if before != nil && len(before.members) > 1 {
		delete(before.members, f.QueueName)
	}
	return i
}

// has reports whether a finding of the incident's condition is about it.
func (i *incident) has(f Finding) bool {
	_, is := i.members[f.QueueName]
	return is && i.Cause == f.Cause
}

// nameLocked makes an incident one of a condition and cause, whose rule is to be found.
func (t *tracker) nameLocked(i *incident, c *Condition, f Finding) {
	i.of, i.Cause, i.rule = c, f.Cause, nil
	i.Condition, i.Alertname, i.Runbook = c.Name, c.Alertname(), t.source.runbook(c.Alertname())
}

// becomeLocked gives an incident another condition. It does not if others are to be told of that, if that is not as bad as was told, or if it began
// as that of another client.
func (t *tracker) becomeLocked(i *incident, c *Condition, f Finding, now time.Time) bool {
	if i.ToldAt != "" && cmp.Or(f.Level, c.Level).Rank() > i.ToldAt.Rank() || f.Who != "" && i.Labels["alertname"] == c.Alertname() && i.Labels["cause"] != f.Cause {
		return false
	}
	was, rule := *i, t.ruleLocked(i)
	t.nameLocked(i, c, f)
	if next := t.ruleLocked(i); i.ToldAt != "" {
		if (next.To == nil) != (rule.To == nil) || !slices.Equal(next.To, rule.To) {
			*i = was
			return false
		}
		i.rule = rule
	}
	i.note(now, "became: "+c.What)
	return true
}

// tellLocked returns the notice that is due about an open incident, if any.
func (t *tracker) tellLocked(i *incident, now time.Time) []*notice {
	s := &i.Incident
	if s.Ack != nil && s.Ack.Until != nil && !now.Before(*s.Ack.Until) {
		s.Ack, t.changed = nil, true
		i.note(now, "the acknowledgement ended")
	}
	quiet := s.Ack != nil || t.maintainedLocked(i, now)
	s.Quiet = quiet
	size := max(s.Count, s.Lost)
	if size < i.rule.Count || i.late < i.rule.lateness || i.restored {
		return nil
	}
	var what, entry string
	switch {
	case i.ToldAt == "" && s.Level != Info:
		what = "begun"
	case i.ToldAt == "":
	case s.Level.Rank() < i.ToldAt.Rank():
		what, entry = "worse", "now "+string(s.Level)
	case size >= growth*max(i.Told, 1):
		what, entry = "grown", "grew: "+s.Summary
	}
	if what == "" || quiet {
		return nil
	}
	if i.Told, t.changed = max(i.Told, size), true; what != "grown" {
		i.ToldAt = s.Level
	}
	if entry != "" {
		i.note(now, entry)
	}
	return []*notice{t.notice(i, what, now)}
}

// endLocked ends an incident. Whoever was told the beginning is told the end.
func (t *tracker) endLocked(i *incident, now time.Time) []*notice {
	at, how := i.gone.UTC(), "over"
	if i.into != nil && i.into.open {
		i.Became, how = i.into.ID, "became incident "+i.into.ID
	} else if i.restored {
		at, how = slices.MaxFunc([]time.Time{i.Since, i.Until.UTC()}, time.Time.Compare), "over: it ended while Curfew was not running"
	}
	i.Ended = &at
	if !i.restored { // what it shows then is all that is known of it
		i.show(slices.Collect(maps.Values(i.members)), 0, 0)
	}
	i.past()
	i.note(at, how)
	t.changed = true
	t.recent = append([]Incident{i.Incident}, t.recent...)
	t.recent = t.recent[:min(len(t.recent), maxRecent)]
	if i.ToldAt == "" {
		return nil
	}
	over := []*notice{t.notice(i, "over", now)}
	t.ended = append(over, slices.DeleteFunc(t.ended, func(n *notice) bool { return now.Sub(n.at) > resolveFor })...)
	return over
}

// ruleLocked returns the rule of an incident, which stays the same once anybody was told of it. That of an earlier run has none at first.
func (t *tracker) ruleLocked(i *incident) *rule {
	if i.rule == nil {
		i.rule = t.rules[slices.IndexFunc(t.rules, func(r *rule) bool { return r.matches(i) })]
	}
	return i.rule
}

// maintainedLocked reports whether windows cover every queue of an incident, or the incident itself if it has no queue.
func (t *tracker) maintainedLocked(i *incident, now time.Time) bool {
	for _, f := range i.present {
		if !slices.ContainsFunc(t.windows, func(w Window) bool { return w.covers(i.of.Name, f.QueueName, now) }) {
			return false
		}
	}
	return true
}

// openLocked returns the incidents that are not over, and their queues. Of a level, those that notify somebody are first, then what costs most messages, then the oldest.
func (t *tracker) openLocked() ([]Incident, map[QueueName]Concern) {
	open := slices.DeleteFunc(slices.Clone(t.all), func(i *incident) bool { return !i.open })
	quiet := map[bool]int{true: 1}
	slices.SortStableFunc(open, func(a, b *incident) int {
		return cmp.Or(cmp.Compare(a.Level.Rank(), b.Level.Rank()), cmp.Compare(quiet[a.Quiet], quiet[b.Quiet]), cmp.Compare(b.Lost, a.Lost),
			cmp.Compare(max(b.Toll, b.Count), max(a.Toll, a.Count)), a.Since.Compare(b.Since))
	})
	list, queues, place := make([]Incident, len(open)), map[QueueName]Concern{}, 0
	for n, i := range open {
		list[n] = i.Incident
		for _, f := range i.present {
			if f.QueueName == i.worst.QueueName { // the sentence is about it
				f.Level = i.Level
			}
			if place++; f.Name != "" && f.Level.Rank() < queues[f.QueueName].Level.Rank() {
				queues[f.QueueName] = Concern{f.Level, place, f.Text, &list[n]}
			}
		}
	}
	return list, queues
}

// firing returns what an Alertmanager is sent again and again, with what is over for a while, and the watchdog if this process is well.
func (t *tracker) firing(sink string, well bool) (list []*notice) {
	now := time.Now()
	if well {
		list = append(list, watchdog(t.view().source, now))
	}
	list = append(list, t.begun(now, func(i *incident) bool { return i.open && i.ToldAt != "" && !i.Quiet && t.ruleLocked(i).sends(sink) })...)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.ended {
		if now.Sub(n.at) <= resolveFor && n.rule.sends(sink) {
			list = append(list, n)
		}
	}
	return list
}

// untold returns the incidents that somebody should have been told of. What did not last yet is told only if it has cost messages.
func (t *tracker) untold(now time.Time) (list []*notice) {
	return t.begun(now, func(i *incident) bool {
		return i.ToldAt == "" && i.Level != Info && !i.Quiet && i.gone.IsZero() && (i.open || i.Toll > 0)
	})
}

// begun returns the beginnings of some incidents.
func (t *tracker) begun(now time.Time, of func(*incident) bool) (list []*notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.all {
		if of(i) {
			list = append(list, t.notice(i, "begun", now))
		}
	}
	return list
}
