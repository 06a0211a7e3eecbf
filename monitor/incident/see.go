package incident

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
	"unicode"

	"curfew/broker/deadline"
	"curfew/monitor/printable"
)

// Each function here finds in a state what one condition is about. What takes one line stands in the table of Conditions.

const (
	silentTooLong  = 15 * time.Second // a loop, the disk
	overdueTooLong = 5 * time.Second  // the next deadline
	backlogTooLong = time.Minute      // likewise, while others are fired
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
	// One hold of a queue's lock, or many short ones, may be the system's doing: lockedAgain is how long after the first there is another,
	lockedAgain, lockedLong = time.Second, 200 * time.Millisecond // and lockedLong is as long as one of them is, so that clients feel it
	// mendedAfter is how long after the last expiry it counts that its cause is gone.
	mendedAfter = 2 * time.Second
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
	// While deadlines are fired, what is overdue is behind others, in a burst.
	fires := slices.ContainsFunc(s.Tallies, func(t Tally) bool { return t.Kind != LockHeld && s.Now.Sub(t.Last) < overdueTooLong })
	return one(s.Lag > overdueTooLong && s.Starved == 0 && !(fires && s.Lag < backlogTooLong), "the next deadline is overdue by %s and has not been fired", printable.Span(s.Lag.Truncate(time.Second)))
}

// counted is the finding about a number of things; none if there are none.
func counted(n int64, text, thing string) []Finding {
	if n == 0 {
		return nil
	}
	return []Finding{{Count: n, Text: fmt.Sprintf(text, printable.Plural(n, thing))}}
}

// seeParked: as long as any dead letter is parked. The queues that these come from are part of it.
func seeParked(s *State) (list []Finding) {
	for q, f := range s.expires { // first, so that an incident about them becomes this one
		if f.parked {
			list = append(list, Finding{QueueName: q, Cause: q.VHost, Toll: f.Toll, Text: f.Text}) // what is parked is counted there
		}
	}
	for _, p := range s.Parked {
		text := printable.Plural(int64(p.Count), "dead letter") + " parked, which had nowhere to go"
		if ago := s.Now.Sub(p.Newest); !p.Newest.IsZero() && ago >= recent {
			text += ", the last " + printable.Span(ago.Truncate(time.Minute)) + " ago"
		}
		if p.Why != "" {
			text += "; " + p.Why
		}
		list = append(list, Finding{QueueName: p.QueueName, Cause: p.VHost, Count: int64(p.Count), Toll: int64(p.Count), Text: text, Action: "parked", Do: p.Do})
	}
	return list
}

// seeLate leaves out what was late since Curfew had no processor: that is one condition, not one for each queue. It leaves out telemetry that was due
// while Curfew was down, too.
func seeLate(s *State) (list []Finding) {
	for _, t := range s.Tallies {
		q, late := QueueName{t.VHost, t.Queue}, time.Duration(t.WorstMillis)*time.Millisecond
		down := t.FirstDeadlineAt > 0 && t.FirstDeadlineAt < s.Opened.UnixMilli()
		if t.Kind != ExpiredLate || s.Starved > 0 || down && s.Purposes[q] == deadline.Telemetry {
			continue
		}
		f := Finding{QueueName: q, Cause: t.VHost, Count: t.Count, Toll: t.Count, Action: t.Action, FirstAt: t.FirstDeadlineAt, Late: late}
		f.Text = fmt.Sprintf("%s expired late, by up to %s", printable.Plural(t.Count, "message"), printable.Span(late))
		if down { // one cause for all virtual hosts
			f.Cause, f.Do, f.Text = "", "Nothing: what was due meanwhile expired when Curfew was back.", f.Text+"; Curfew was down when the first was due"
		}
		list = append(list, f)
	}
	return list
}

// blame finds the consumers that are the reason that messages of a queue expire, given those of a moment before. A consumer is to blame that holds
// messages, unless others will expire though it takes some, or did before it held any. It alone stays so for what expires when it gives them back.
func (s *State) blame(before map[QueueName]PastDeadline) {
	last, holders := map[QueueName]time.Time{}, map[QueueName][]PastDeadline{}
	s.Blamed, s.risks, s.holders, s.parks = map[QueueName]PastDeadline{}, map[QueueName]*deadline.Forecast{}, map[QueueName]PastDeadline{}, map[string]bool{}
	for _, t := range s.Tallies {
		if t.Kind == Expired {
			last[QueueName{t.VHost, t.Queue}] = t.Last
		}
	}
	for i := range s.Forecasts {
		if f := &s.Forecasts[i]; f.NearlyDue {
			s.risks[QueueName{f.VHost, f.Queue}] = f
		}
	}
	for _, p := range s.Parked {
		s.parks[p.VHost] = true
	}
	taken := func(q QueueName) bool { return s.risks[q] != nil && !s.risks[q].Stuck }
	for q, was := range before {
		if !taken(q) && (s.Now.Sub(was.at) <= stuckFor || last[q].Before(was.at.Add(stuckFor)) && !last[q].IsZero()) {
			s.Blamed[q] = was
		}
	}
	for _, h := range s.Held {
		holders[h.QueueName] = append(holders[h.QueueName], h)
	}
	for q, list := range holders {
		was, is := s.Blamed[q]
		h := leading(list, was.Address)
		s.holders[q] = h
		if taken(q) || !is && !last[q].IsZero() && s.risks[q] == nil || is && was.Address != h.Address {
			continue
		}
		h.at, h.Past = s.Now, max(h.Past, was.Past)
		s.Blamed[q] = h
	}
}

// leading is the one to name of the clients that hold messages of a queue: the one at an address or else that which holds most past their deadlines,
// with how much the others hold.
func leading(list []PastDeadline, address string) PastDeadline {
	var count, past int
	h := list[0]
	for _, one := range list {
		count, past = count+one.Count, past+one.Past
		if one.Address == address || h.Address != address && cmp.Or(cmp.Compare(one.Past, h.Past), cmp.Compare(one.Count, h.Count)) > 0 {
			h = one
		}
	}
	h.others, h.othersCount, h.othersPast = len(list)-1, count-h.Count, past-h.Past
	return h
}

// mended reports whether the cause of expiries is gone: a consumer has come, the one to blame has left, or what was parked has been moved.
func (s *State) mended(t *Tally) bool {
	q := QueueName{t.VHost, t.Queue}
	of, holder := s.Consumers[q], s.Blamed[q]
	gone := of.Came.After(t.Last) && !of.Left.After(of.Came) || !holder.at.IsZero() && of.Left.After(holder.at) || t.Action == "parked" && !s.parks[t.VHost]
	return gone && t.Kind == Expired && s.Now.Sub(t.Last) >= mendedAfter && s.risks[q] == nil && s.holders[q].Count == 0
}

// expiring is, by queue, what expires or will, where that is a loss. What is parked, or was before others expired, counts where it is parked and not here.
func (s *State) expiring() map[QueueName]Finding {
	of := make(map[QueueName]Finding)
	for _, t := range s.Tallies {
		q := QueueName{t.VHost, t.Queue}
		if t.Kind != Expired || !s.Purposes[q].Loses() {
			continue
		}
		parked, others := t.Action == "parked" && s.parks[t.VHost], t.Count-t.Parked
		said := others
		switch {
		case parked:
			said = t.Parked
		case t.Action == "parked": // and taken from there since: nothing else counts it
			others, said = t.Count, t.Count
		}
		if said == 0 {
			continue
		}
		f := Finding{
			QueueName: q, Cause: q.VHost, Level: Warning, Count: others, Toll: others, Action: t.Action, FirstAt: t.FirstDeadlineAt, Late: time.Duration(t.WorstMillis) * time.Millisecond,
			Text: printable.Plural(said, "message") + " expired" + strings.TrimSuffix(" ("+strings.ReplaceAll(t.Action, "_", "-")+")", " ()"),
			at:   t.Last, parked: parked, keeping: s.Keeping[q],
		}
		if t.Dropped > 0 && t.Queue != otherQueues { // they are lost, in a queue that is known to be for work
			f.Level, f.Lost, f.Losing = Critical, t.Dropped, t.Losing
			f.Text = printable.Plural(t.Dropped, "message") + " lost (expired)"
			if saved := others - t.Dropped; saved > 0 {
				f.Text += ", " + printable.Number(saved) + " dead-lettered"
			}
		}
		of[q] = f
	}
	for q, r := range s.risks {
		if !s.Purposes[q].Loses() {
			continue
		}
		f, is := of[q]
		now := cmp.Or(s.Clock, s.Now.UnixMilli())
		if text := Risk(r, now); is {
			f.Text += "; " + text
		} else {
			f = Finding{QueueName: q, Cause: q.VHost, FirstAt: r.FirstMiss, Text: text, keeping: s.Keeping[q], soon: r.FirstMiss-now < worseSoon.Milliseconds()}
		}
		f.Count += int64(r.AtRisk)
		of[q] = f
	}
	return of
}

// seeUnconsumed: messages of a queue for work expire, or will. Where a consumer is to blame, that is the condition (seeHeld), and where they are
// parked, that is (seeParked).
func seeUnconsumed(s *State) (list []Finding) {
	for q, f := range s.expires {
		if _, is := s.Blamed[q]; is || f.parked {
			continue
		}
		if h, is := s.holders[q]; is {
			f.Text += "; " + h.finding(s).Text
		} else if r := s.risks[q]; r != nil && r.Rate > 0 {
			f.slow = s.slow(q, r.Rate)
		}
		if of := s.Consumers[q]; of.Last != "" {
			left, again := "left", "again"
			if of.ClosedBy != "" { // mostly since it was stuck
				left, again = "was closed by "+printable.Text(of.ClosedBy, ""), "again once it is mended"
			}
			f.Text += fmt.Sprintf("; %s %s %s ago", printable.Text(of.Last, ""), left, printable.Span(s.Now.Sub(of.Left).Truncate(time.Second)))
			f.Do, f.Left = "Start "+printable.Text(of.Last, "")+" "+again+", or add other consumers.", Application(of.Last)
			for _, e := range s.ClientErrors {
				if e.Left == f.Left {
					f.Text, f.Do = f.Text+", and fails: "+e.Text, cmp.Or(e.Do, f.Do)
				}
			}
		}
		if f.Do == "" && slices.Contains(s.Lacks, "dlq") { // beside RabbitMQ there is nothing to replay with
			f.Do = "Add consumers or make them faster, or give messages more time. What was dead-lettered is in the queues to which RabbitMQ has moved it."
		}
		list = append(list, f)
	}
	return list
}

// slow asks who consumes a queue too slowly; rate is how many messages a second it takes, if that is known better than by what it took last.
// Incidents keep findings for long, so it must not keep the state.
func (s *State) slow(q QueueName, rate float64) func() Slow {
	ask := s.Slow
	if ask == nil {
		return nil
	}
	return func() Slow {
		of := ask(q)
		of.Out = cmp.Or(rate, of.Out)
		return of
	}
}

// tell adds to a finding who is slow, and what to do about that.
func (s *Slow) tell(f *Finding, c *Condition) {
	if s.Who == "" {
		return
	}
	who, takes, holds := printable.Text(s.Who, ""), "takes", "holds"
	if s.Others > 0 {
		who, takes, holds = who+" and "+printable.Plural(int64(s.Others), "other consumer"), "take", "hold"
	}
	f.Text += fmt.Sprintf("; %s %s %.3g a second of %.3g that come, and %s %s", who, takes, s.Out, s.In, holds, printable.Plural(int64(s.Held), "message"))
	f.Do = "Make " + who + " faster, or start more of it, " + strings.TrimPrefix(c.Do, "Add consumers or make them faster, ")
}

// seeObjectives: the objectives of queues that are missed so fast that they will not be met.
func seeObjectives(s *State) (list []Finding) {
	for _, m := range s.Objectives {
		text := fmt.Sprintf("%.0f %% missed its objective (%s) in the last minutes, %.0f times what it allows", 100*m.Missed, m.Objective, m.Burn)
		if m.Oldest > m.Objective.Within() {
			text += "; the oldest has waited " + printable.Span(m.Oldest.Duration().Truncate(time.Second))
		}
		list = append(list, Finding{QueueName: m.QueueName, Cause: m.VHost, Count: 1, Text: text, slow: s.slow(m.QueueName, 0)})
	}
	return list
}

// cause is the same for a client that connects again, and for all that have its name but for a number, as instances of one application: what sticks
// in one of them mostly sticks in all. A client without a name is its user and its host: then Connection has the addresses of both ends.
func (h *PastDeadline) cause() string {
	who, _, unnamed := strings.Cut(h.Connection, " -> ")
	if who = Application(who); who == "" || unnamed {
		host, _, _ := net.SplitHostPort(h.Address)
		who = h.User + " " + host
	}
	return who + " " + h.VHost
}

// Application is the name of a client but for what follows a number in it, so it is the same for all instances; "": that would be nothing.
func Application(client string) string {
	if at := strings.IndexFunc(client, unicode.IsDigit); at >= 0 {
		client = strings.TrimRight(client[:at], "-._:# ")
	}
	return client
}

// finding says what a client holds, and the others besides.
func (h *PastDeadline) finding(s *State) Finding {
	f := Finding{
		QueueName: h.QueueName, keeping: s.Keeping[h.QueueName], Cause: h.cause(),
		Count: int64(h.Count + h.othersCount), Toll: int64(h.Past + h.othersPast), FirstAt: h.FirstDeadlineAt,
	}
	f.Who = fmt.Sprintf("%s (user %s at %s)", name(h.Connection), name(h.User), h.Address)
	f.Do = "See what the consumer is doing, or close its connection: `" + deadline.Command("curfew connections close", []string{h.Connection}) + "`. What it gives back then expires."
	f.Text = f.Who + " holds " + printable.Plural(int64(h.Count), "message")
	if h.Past > 0 {
		f.Late = s.Now.Sub(time.UnixMilli(h.FirstDeadlineAt)).Truncate(time.Second)
		f.Text += fmt.Sprintf(", the longest %s past its deadline", printable.Span(f.Late))
	} else {
		f.Text += " and takes no more"
	}
	if h.others > 0 {
		others, hold := printable.Plural(int64(h.others), "other client"), " hold "
		if h.others == 1 {
			hold = " holds "
		}
		f.Who += " and " + others
		f.Text += "; " + others + hold + printable.Number(int64(h.othersCount)) + " more"
	}
	return f
}

// seeHeld: one cause for each client that is named, with what expires or will behind the messages that it holds, and what expired of those that it
// gave back. Where none of them is to blame seeUnconsumed tells it, and where expiry is meant nothing does.
func seeHeld(s *State) (list []Finding) {
	for q, of := range s.Blamed {
		h, holds := s.holders[q]
		lost, is := s.expires[q]
		is = is && !lost.parked
		if holds && s.Purposes[q].Loses() {
			f := h.finding(s)
			if is && h.Address == of.Address {
				f.add(&lost, "; behind it: ")
			}
			list = append(list, f)
		}
		if is && h.Address != of.Address && lost.at.After(of.at) {
			if holds { // the others still do
				of.others, of.othersPast = 0, 0
			}
			f := of.finding(s)
			f.Text = f.Who + " held " + printable.Plural(f.Toll, "message") + " past their deadlines"
			f.Count, f.Toll, f.Late, f.Do = lost.Count, 0, 0, ""
			f.add(&lost, "; ")
			list = append(list, f)
		}
	}
	return list
}

// add adds what expires in the same queue. It is no part of what is held.
func (f *Finding) add(lost *Finding, how string) {
	f.Toll, f.Text = f.Toll+lost.Toll, f.Text+how+lost.Text
	f.Level, f.Lost, f.Losing = lost.Level, lost.Lost, lost.Losing
}

func seeLetters(s *State) []Finding {
	if s.Letters <= tooManyLetters {
		return nil
	}
	return counted(int64(s.Letters), "%s have left their queues and are not where they are dead-lettered", "message")
}

// rose finds that a counter of what must not happen went up in the last minute.
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
		list = append(list, Finding{Cause: r.What, Count: 1, Text: fmt.Sprintf("%s connections are refused: the limit of %s is reached", r.What, printable.Number(int64(r.Most)))})
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
		if t.Kind == LockHeld && t.Last.Sub(t.Began) >= lockedAgain && t.Hold.For >= lockedLong && s.Starved == 0 {
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
	list := one(s.Starved > 0, "for %s in the last minute, when deadlines may have fired late", printable.Span(s.Starved))
	if s.Starved >= starvedBadly {
		list[0].Level = Warning
	}
	return list
}

// seeOverdue leaves out what is not late yet: a message may be about to leave.
func seeOverdue(s *State) (list []Finding) {
	for _, q := range s.Overdue {
		n, late := int64(q.Count), s.Now.Sub(time.UnixMilli(q.FirstDeadlineAt))
		if late > deadline.LateAfter {
			text := fmt.Sprintf("%s left, the first was due %s ago", printable.Plural(n, "message"), printable.Span(late.Truncate(time.Second)))
			list = append(list, Finding{QueueName: q.QueueName, Cause: q.VHost, Count: n, Toll: n, FirstAt: q.FirstDeadlineAt, Late: late, Text: text})
		}
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

// worstFirst compares findings of a condition: first their levels, then how many messages are lost or will be.
func worstFirst(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.Level.Rank(), b.Level.Rank()), cmp.Compare(b.Lost, a.Lost), cmp.Compare(max(b.Toll, b.Count), max(a.Toll, a.Count)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.Name, b.Name))
}
