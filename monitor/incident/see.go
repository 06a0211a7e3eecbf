package incident

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"curfew/monitor/printable"
)

// Each function here finds in a state what one condition is about. What takes one line stands in the table of Conditions.

const (
	silentTooLong  = 15 * time.Second // a loop, the disk
	overdueTooLong = 5 * time.Second  // the next deadline
	clockLimit     = 5 * time.Second  // above a leap second and the steps of a working time service
	tooManyLetters = 10_000           // that wait to be moved
	mostSlow       = 0.01
	mostLate       = 0.01                   // of what expires: the 99th percentile is late
	skewLimit      = 500 * time.Millisecond // as much as a message may be late
	fillsSoon      = 4 * time.Hour
	mostFiles      = 0.9
	// LateWithin is the span of State.LateShare.
	LateWithin     = 4 * time.Minute
	heartbeatLimit = 5 * time.Minute
	sinkLimit      = time.Minute // a sink fails for so long
	// starvedBadly is how long Curfew has no processor, within a minute, for somebody to be told.
	starvedBadly = 10 * time.Second
	// stuckFor is how long after it is over a stuck consumer is the reason for expiries: of what it gave back, and of what waited behind it.
	stuckFor = 5 * time.Second
	// lockedAgain is how long after the first a queue's lock must be held for long again: one hold alone may be the system's doing.
	lockedAgain = time.Second
)

// one is the finding of a condition that concerns Curfew itself; none if is is false.
func one(is bool, text string, values ...any) []Finding {
	if !is {
		return nil
	}
	return []Finding{{Count: 1, Text: printable.Plainly(fmt.Sprintf(text, values...))}}
}

func seeStuck(s *State) []Finding {
	switch {
	case len(s.Stalled) > 0:
		return one(true, "%s: no sign of life", strings.Join(s.Stalled, ", "))
	case s.Silent > silentTooLong:
		return one(true, "the loop that fires deadlines has been silent for %s", printable.Span(s.Silent.Truncate(time.Second)))
	}
	return one(s.Lag > overdueTooLong && s.Starved == 0, "the next deadline is overdue by %s and has not been fired", printable.Span(s.Lag.Truncate(time.Second)))
}

// counted is the finding about a number of things; none if there are none.
func counted(n int64, text, thing string) []Finding {
	if n == 0 {
		return nil
	}
	return []Finding{{Count: n, Text: fmt.Sprintf(text, printable.Plural(n, thing))}}
}

// seeParked: as long as any dead letter is parked.
func seeParked(s *State) (list []Finding) {
	for _, p := range s.Parked {
		text := printable.Plural(int64(p.Count), "dead letter") + " parked, which had nowhere to go"
		if p.Why != "" {
			text += "; " + p.Why
		}
		list = append(list, Finding{QueueName: p.QueueName, Cause: p.VHost, Count: int64(p.Count), Toll: int64(p.Count), Text: text, Action: "parked", Do: p.Do})
	}
	return list
}

// seeLate leaves out what was late since Curfew had no processor: that is one condition, not one for each queue.
func seeLate(s *State) (list []Finding) {
	for _, t := range s.Tallies {
		if t.Kind == ExpiredLate && s.Starved == 0 {
			late, since := time.Duration(t.WorstMillis)*time.Millisecond, ""
			if t.FirstDeadlineAt > 0 && t.FirstDeadlineAt < s.Opened.UnixMilli() {
				since = "; Curfew was down when the first was due"
			}
			list = append(list, Finding{
				QueueName: QueueName{t.VHost, t.Queue}, Cause: t.VHost, Count: t.Count, Toll: t.Count, Action: t.Action, FirstAt: t.FirstDeadlineAt, Late: late,
				Text: fmt.Sprintf("%s expired late, by up to %s%s", printable.Plural(t.Count, "message"), printable.Span(late), since),
			})
		}
	}
	return list
}

// seeLateness is about what neither seeLate nor seeStarved tells: short stalls without a processor that go on for minutes.
func seeLateness(s *State) []Finding {
	return one(s.LateShare > mostLate && s.Starved < starvedBadly && len(seeLate(s)) == 0, "%.0f %% of what expired in the last minutes did so over a second after its deadline", 100*s.LateShare)
}

// stuckQueues are those whose consumers hold messages and take no others: what waits behind these is at risk for that reason alone.
func stuckQueues(s *State) map[QueueName]bool {
	served, stuck := map[QueueName]bool{}, map[QueueName]bool{}
	for _, r := range s.AtRisk {
		served[r.QueueName] = !r.Stuck
	}
	for _, h := range s.Held {
		stuck[h.QueueName] = !served[h.QueueName]
	}
	return stuck
}

// seeUnconsumed: messages of a queue for work expire, or will. Where a stuck consumer is the cause, that is the condition (seeHeld).
func seeUnconsumed(s *State) (list []Finding) {
	stuck := stuckQueues(s)
	of := make(map[QueueName]*Finding)
	at := func(q QueueName) *Finding {
		if of[q] == nil {
			of[q] = &Finding{QueueName: q, Cause: q.VHost}
		}
		return of[q]
	}
	for _, t := range s.Tallies {
		q := QueueName{t.VHost, t.Queue}
		if at, was := s.Stuck[q]; was && t.Last.Sub(at) <= stuckFor {
			continue
		}
		if t.Kind == Expired && s.Purposes[q].Loses() && !stuck[q] {
			f := at(q)
			f.Count, f.Toll, f.Action, f.FirstAt, f.Late = t.Count, t.Count, t.Action, t.FirstDeadlineAt, time.Duration(t.WorstMillis)*time.Millisecond
			f.lose(&t, s)
			f.Text = printable.Plural(t.Count, "message") + " expired" + strings.TrimSuffix(" ("+strings.ReplaceAll(t.Action, "_", "-")+")", " ()")
			if f.Level == Critical {
				f.Text = printable.Plural(t.Dropped, "message") + " lost (expired)"
				if saved := t.Count - t.Dropped; saved > 0 {
					f.Text += fmt.Sprintf(", %d dead-lettered", saved)
				}
			}
		}
	}
	for _, r := range s.AtRisk {
		if !s.Purposes[r.QueueName].Loses() || stuck[r.QueueName] {
			continue
		}
		f, what := at(r.QueueName), printable.Plural(r.Count, "message")+" at risk: "
		if f.Text != "" {
			f.Text += "; "
		} else {
			f.FirstAt = r.FirstAt
		}
		f.Count += r.Count
		f.Text += what + strings.TrimPrefix(r.Reason, fmt.Sprintf("%d messages wait, ", r.Count)) // all that wait
	}
	for _, f := range slices.SortedFunc(maps.Values(of), func(a, b *Finding) int { return worstFirst(*a, *b) }) {
		if left, has := s.Departed[f.QueueName]; has {
			f.Text += fmt.Sprintf("; %s left %s ago", printable.Text(left.Client, ""), printable.Span(left.Ago.Truncate(time.Second)))
		}
		list = append(list, *f)
	}
	return list
}

// seeObjectives: the objectives of queues that are missed so fast that they will not be met.
func seeObjectives(s *State) (list []Finding) {
	for _, m := range s.Objectives {
		text := fmt.Sprintf("%.0f %% missed its objective (%s) in the last minutes, %.0f times what it allows", 100*m.Missed, m.Objective, m.Burn)
		if m.Oldest > m.Objective.Within() {
			text += "; the oldest has waited " + printable.Span(m.Oldest.Duration().Truncate(time.Second))
		}
		list = append(list, Finding{QueueName: m.QueueName, Cause: m.VHost, Count: 1, Text: text})
	}
	return list
}

// seeHeld: one cause for each client, with what expires or will behind the messages that it holds.
func seeHeld(s *State) (list []Finding) {
	stuck, told := stuckQueues(s), map[QueueName]bool{}
	for _, h := range s.Held {
		f := Finding{QueueName: h.QueueName, Cause: h.Connection + " " + h.Address + " " + h.VHost, Count: int64(h.Count), Toll: int64(h.Past), FirstAt: h.FirstDeadlineAt}
		f.Who = fmt.Sprintf("%s (user %s at %s)", name(h.Connection), name(h.User), h.Address)
		f.Text = f.Who + " holds " + printable.Plural(int64(h.Count), "message")
		if h.Past > 0 {
			f.Late = s.Now.Sub(time.UnixMilli(h.FirstDeadlineAt)).Truncate(time.Second)
			f.Text += fmt.Sprintf(", the longest %s past its deadline", printable.Span(f.Late))
		} else {
			f.Text += " and takes no more"
		}
		if stuck[h.QueueName] && !told[h.QueueName] {
			told[h.QueueName] = true
			f.addBehind(s)
		}
		list = append(list, f)
	}
	return list
}

// lose makes it critical if messages were dropped, and so are lost: in a queue that is known to be for work.
func (f *Finding) lose(t *Tally, s *State) {
	f.Level = Warning
	if t.Dropped > 0 && t.Queue != otherQueues && s.Purposes[QueueName{t.VHost, t.Queue}].Loses() {
		f.Level, f.Lost, f.Losing = Critical, t.Dropped, t.Losing
	}
}

// addBehind adds what expires or will in the queue of a stuck consumer.
func (f *Finding) addBehind(s *State) {
	for _, t := range s.Tallies {
		if t.Kind == Expired && t.VHost == f.VHost && t.Queue == f.Name {
			f.Count, f.Toll = f.Count+t.Count, f.Toll+t.Count
			f.lose(&t, s)
			f.Text += "; " + printable.Plural(t.Count, "message") + " expired behind it"
		}
	}
	for _, r := range s.AtRisk {
		if r.QueueName == f.QueueName {
			f.Count += r.Count
			f.Text += "; " + printable.Plural(r.Count, "message") + " behind it at risk"
		}
	}
}

func seeLetters(s *State) []Finding {
	if s.Letters <= tooManyLetters {
		return nil
	}
	return counted(int64(s.Letters), "%s have left their queues and are not where they are dead-lettered", "message")
}

// rose finds that a counter of what must not happen went up in the last minutes.
func rose(condition, thing, what string) func(*State) []Finding {
	return func(s *State) []Finding {
		n := int64(s.Rising[condition])
		return one(n > 0, "%s %s", printable.Plural(n, thing), what)
	}
}

func seeSchedule(s *State) []Finding {
	if s.Schedule != "" {
		_, why, _ := strings.Cut(s.Schedule, ": ")
		return one(true, "Redis is away, and this process fires deadlines from its own memory (%s)", cmp.Or(why, s.Schedule))
	}
	return one(len(s.Redis) > 0, "%s", strings.Join(s.Redis, "; "))
}

func seeRefusals(s *State) (list []Finding) {
	for _, r := range s.Refusals {
		list = append(list, Finding{Cause: r.What, Count: 1, Text: fmt.Sprintf("%s connections are refused: the limit of %d is reached", r.What, r.Most)})
	}
	return list
}

// offBy says how far one clock is from another.
func offBy(d time.Duration) string {
	if d < 0 {
		return printable.Span(-d) + " behind"
	}
	return printable.Span(d) + " ahead of"
}

func seeLocked(s *State) (list []Finding) {
	for _, t := range s.Tallies {
		if t.Kind == LockHeld && t.Last.Sub(t.Began) >= lockedAgain && s.Starved == 0 {
			list = append(list, Finding{
				QueueName: QueueName{t.VHost, t.Queue}, Cause: t.VHost, Count: t.Count,
				Text: fmt.Sprintf("held for long %s; the longest, by the operation %q, took %s", printable.Plural(t.Count, "time"), t.Hold.Operation, t.Hold.For.Round(time.Millisecond)),
			})
		}
	}
	return list
}

// seeStarved: worth a notification only if it is bad.
func seeStarved(s *State) []Finding {
	list := one(s.Starved > 0, "for %s in the last minute: deadlines fired late by as much", printable.Span(s.Starved))
	if s.Starved >= starvedBadly {
		list[0].Level = Warning
	}
	return list
}

func seeNotKept(s *State) (list []Finding) {
	for _, q := range s.NotKept {
		list = append(list, Finding{QueueName: q.QueueName, Cause: q.VHost, Count: 1, Text: printable.Plainly(q.Reason)})
	}
	return list
}

func seeSinks(s *State) (list []Finding) {
	for _, sink := range s.Sinks {
		if t := sink.Trouble; t != nil && s.Now.Sub(t.Since) >= sinkLimit {
			list = append(list, Finding{Cause: sink.Name, Count: 1, Text: fmt.Sprintf("%s has been failing for %s: %s", sink.Name, printable.Span(s.Now.Sub(t.Since).Truncate(time.Second)), printable.Plainly(t.Error))})
		}
	}
	return list
}

// worstFirst compares findings of a condition: first their levels, then how many messages are lost or will be, then how many it is about.
func worstFirst(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.Level.rank(), b.Level.rank()), cmp.Compare(max(b.Toll, b.Count), max(a.Toll, a.Count)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.Name, b.Name))
}
