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
	// maxOpen is how many of a condition there may be at all.
	maxOpen = 100
	// growth is by how much the size of an incident must have grown for another notification: what it is about now or, if that is more, what is lost.
	growth = 10
	// maxRecent is how many incidents that are over are kept.
	maxRecent = 100
	// restoredFor is how long an incident of an earlier run may stay unseen after the start, unless Condition.Returns is longer.
	restoredFor = 5 * time.Second
	// backWithin is how long after its end an incident about lost messages goes on under its ID, if one of its queues loses some again.
	backWithin = 10 * time.Minute
	// worseSoon is how much longer nobody is told of what is at risk, and will be lost by then: they are told of that, once.
	worseSoon = 5 * time.Second
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
	recent  []keptIncident // over, the newest first
	ended   []*notice      // of them, for resolveFor, the newest first
	windows []Window
	changed bool // since it was saved
	savedAt time.Time
	retryAt time.Time // when a save that failed is tried again

	lookedAt  time.Time
	hour      deadline.Hour        // at the last look
	forecasts []deadline.Forecast  // likewise
	view      atomic.Pointer[View] // what is shown
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
	goesOn  map[QueueName]string // the ID of the incident of a queue that is not over, or may be back
}

// publishLocked shows what changed.
func (t *tracker) publishLocked() {
	open, queues := t.openLocked()
	over, goesOn := make([]Incident, len(t.recent)), make(map[QueueName]string)
	for n := len(t.recent) - 1; n >= 0; n-- {
		over[n] = t.recent[n].Incident
		for _, f := range t.recent[n].Findings {
			goesOn[f.QueueName] = over[n].ID
		}
	}
	for q, in := range queues {
		goesOn[q] = in.In.ID
	}
	t.view.Store(&View{t.lookedAt, open, over, queues, t.hour, t.forecasts, t.windows, t.rules, t.source, goesOn})
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
			t.beginLocked(i, now)
		case i.open && !i.gone.IsZero() && (i.wentOn() || now.Sub(i.gone) >= t.patience(i)):
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
	for n := range t.recent {
		if now.Sub(*t.recent[n].Ended) > backWithin {
			t.recent[n].Findings = nil
		}
	}
	return due
}

// beginLocked makes it an incident. It is the one that a queue of it had before, if that is back and no better: an acknowledgement ended with that one.
func (t *tracker) beginLocked(i *incident, now time.Time) {
	n := slices.IndexFunc(t.recent, func(was keptIncident) bool {
		return i.of.Loss && (was.Condition == i.of.Name || i.Level.Rank() <= was.Level.Rank()) && slices.ContainsFunc(was.Findings, func(f Finding) bool { return i.members[f.QueueName].Name != "" })
	})
	if n >= 0 {
		was := t.recent[n]
		t.recent = slices.Delete(t.recent, n, n+1)
		i.ID, i.Since, i.History, i.Toll, i.Lost, i.Told, i.ToldAt, i.Forgotten, i.back = was.ID, was.Since, was.History, was.Toll, was.Lost, was.Told, was.ToldAt, was.Forgotten, true
		for _, f := range was.Findings {
			of, is := i.members[f.QueueName]
			if !is {
				of, of.Cause = f, i.Cause
			}
			of.Joined = f.Joined
			i.members[f.QueueName] = of
		}
		i.refresh(now)
	}
	i.begin(now)
	t.changed = true
}

func (t *tracker) patience(i *incident) time.Duration {
	if i.restored && !i.of.OfOneRun {
		return max(i.of.Ends, i.of.Returns, restoredFor)
	}
	return i.of.Ends
}

// incidentLocked is the one that a finding belongs to. Findings of one cause are one incident if they begin together, or if the same application has
// left their queues, or if Condition.PerCause says so. What becomes of the messages of a queue (Condition.Loss) goes on in one incident: it becomes
// one of the other condition, or is over if there is one already.
func (t *tracker) incidentLocked(c *Condition, f Finding, found map[*Condition][]Finding, now time.Time) *incident {
	var like, any, before *incident
	all := 0
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
			if c.PerCause || !i.open || f.Left != "" && i.left[f.Left] {
				like = i
			}
		} else if is && i.open && i.of.Loss && c.Loss && !slices.ContainsFunc(found[i.of], func(o Finding) bool { return o.QueueName == f.QueueName && i.has(o) }) {
			before = i
		}
	}
	i, alone := any, before != nil && !slices.ContainsFunc(found[before.of], before.has) // nothing else of it is found
	switch {
	case like != nil:
		i = like
	case alone && t.becomeLocked(before, c, f, now):
		return before
	case all < maxOpen:
		i = &incident{members: make(map[QueueName]Finding), left: make(map[string]bool), seen: now}
		t.nameLocked(i, c, f)
		t.all = append(t.all, i)
	}
	if alone {
		before.into, before.moved = i, f.QueueName
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

// wentOn reports whether what it was about goes on in another incident, which is open.
func (i *incident) wentOn() bool {
	return i.into != nil && i.into.open && slices.ContainsFunc(i.into.present, func(f Finding) bool { return f.QueueName == i.moved })
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
	joined := slices.IndexFunc(i.present, func(f Finding) bool { return s.Ack != nil && f.Joined.After(s.Ack.At) })
	if joined >= 0 {
		s.Ack, t.changed = nil, true
		i.note(now, "the acknowledgement ended: another queue, "+i.present[joined].String())
	}
	quiet := s.Ack != nil || t.maintainedLocked(i, now)
	s.Quiet = quiet
	size := max(s.Count, s.Lost)
	if size < i.rule.Count || i.late < i.rule.lateness || i.restored {
		return nil
	}
	var what, entry string
	switch {
	case (i.ToldAt == "" || i.back) && s.Level != Info:
		what = "begun"
	case i.ToldAt == "":
	case s.Level.Rank() < i.ToldAt.Rank():
		what, entry = "worse", "now "+string(s.Level)
	case joined >= 0:
		what = "joined"
	case size >= growth*max(i.Told, 1):
		what, entry = "grown", "grew: "+s.Summary
	}
	if what == "" || quiet || what == "begun" && i.worst.soon && now.Sub(i.seen) < i.of.Begins+worseSoon {
		return nil
	}
	if i.Told, i.back, t.changed = max(i.Told, size), false, true; what == "begun" || what == "worse" {
		i.ToldAt = s.Level
	}
	if entry != "" {
		i.note(now, entry)
	}
	n := t.notice(i, what, now)
	if what == "joined" {
		n.worst = i.present[joined]
	}
	return []*notice{n}
}

// endLocked ends an incident. Whoever was told the beginning is told the end.
func (t *tracker) endLocked(i *incident, now time.Time) []*notice {
	at, how := i.gone.UTC(), "over"
	if i.wentOn() {
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
	if i.Findings = nil; i.of.Loss && i.Became == "" {
		i.Findings = slices.Collect(maps.Values(i.members))
	}
	t.recent = append([]keptIncident{i.keptIncident}, t.recent...)
	t.recent = t.recent[:min(len(t.recent), maxRecent)]
	if i.ToldAt == "" || i.back { // nobody was told
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
		covers := func(w Window) bool {
			return !now.Before(w.From) && now.Before(w.Until) && (w.Condition == "" || ConditionOf(w.Condition).Name == i.of.Name) &&
				w.vhost.matches(f.VHost) && w.queue.matches(f.Name)
		}
		if !slices.ContainsFunc(t.windows, covers) {
			return false
		}
	}
	return true
}

// ordered are incidents in the order in which every face has them. Of a level, those that notify somebody are first, and of these those that are
// about all of Curfew and no queue. Then each condition has one incident before any has its second: whoever sees only the first ones sees all that is
// wrong. Of a condition, what costs most messages is first, then the oldest.
func ordered(list []*incident) []*incident {
	all := slices.Clone(list)
	group := func(i *incident) int {
		of := 4 * i.Level.Rank()
		if i.Quiet {
			of += 2
		}
		if i.Queues > 0 {
			of++
		}
		return of
	}
	slices.SortStableFunc(all, func(a, b *incident) int {
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(max(b.Toll, b.Count), max(a.Toll, a.Count)), a.Since.Compare(b.Since))
	})
	type kind struct {
		of    *Condition
		group int
	}
	turns, next := make(map[*incident]int, len(all)), make(map[kind]int)
	for _, i := range all {
		k := kind{i.of, group(i)}
		turns[i] = next[k]
		next[k]++
	}
	slices.SortStableFunc(all, func(a, b *incident) int {
		return cmp.Or(cmp.Compare(group(a), group(b)), cmp.Compare(turns[a], turns[b]))
	})
	return all
}

// openLocked returns the incidents that are not over, and their queues: each stands by what is wrong with it, not by its incident.
func (t *tracker) openLocked() ([]Incident, map[QueueName]Concern) {
	open := slices.DeleteFunc(ordered(t.all), func(i *incident) bool { return !i.open })
	type member struct {
		Finding
		in *Incident
	}
	list, queues, members := make([]Incident, len(open)), map[QueueName]Concern{}, []*member{}
	for n, i := range open {
		list[n] = i.Incident
		for _, f := range i.present {
			if f.QueueName == i.worst.QueueName { // the sentence is about it
				f.Level = i.Level
			}
			if f.Name != "" {
				members = append(members, &member{f, &list[n]})
			}
		}
	}
	slices.SortStableFunc(members, func(a, b *member) int { return worstFirst(a.Finding, b.Finding) })
	for n, m := range members {
		if _, is := queues[m.QueueName]; !is {
			queues[m.QueueName] = Concern{m.Level, n + 1, m.Text, m.in}
		}
	}
	return list, queues
}

// firing returns what an Alertmanager is sent again and again, with what is over for a while, and the watchdog if this process is well.
func (t *tracker) firing(sink string, well bool) (list []*notice) {
	now := time.Now()
	if from := t.view.Load().source; well {
		list = append(list, &notice{
			Incident: Incident{Condition: "watchdog", Alertname: "CurfewWatchdog", Level: Info, Since: now, Runbook: from.runbook("CurfewWatchdog"), Summary: "Deadlines are watched: this alert fires all the time; if it stops, something is wrong"},
			source:   from, rule: &rule{Rule: Rule{Name: "curfew", Severity: "none"}}, names: map[string]string{"alertname": "CurfewWatchdog"}, at: now,
		})
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

// begun returns the beginnings of some incidents.
func (t *tracker) begun(now time.Time, of func(*incident) bool) (list []*notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range ordered(t.all) {
		if of(i) {
			list = append(list, t.notice(i, "begun", now))
		}
	}
	return list
}
