package simulation

import "curfew/broker/deadline"

// reschedule gives a few messages, of any age, other deadlines: earlier, later, none, or
// now. Or it lets them expire at once, dead-lettered or dropped.
func (w *world) reschedule() {
	refs := w.randomRefs()
	for _, ref := range refs[:min(len(refs), 1+w.rng.IntN(3))] {
		switch w.rng.IntN(5) {
		case 0:
			w.fireNow(ref, chance(w.rng, 0.3))
		case 1:
			w.rescheduleTo(ref, 0)
		default:
			w.rescheduleTo(ref, deadline.Instant(w.now()/microsecond+(randomTTL(w.rng)-2)*1000+w.rng.Int64N(1000)))
		}
	}
}

func (w *world) rescheduleTo(ref deadline.Ref, to deadline.Instant) {
	w.call(func() {
		want, wantRef := w.model.reschedule(ref, to, false)
		got, gotRef := w.broker.Reschedule(ref, to)
		if got != want || gotRef != wantRef {
			w.fail("reschedule %+v: %v %+v, should be %v %+v", ref, got, gotRef, want, wantRef)
		}
	}, "reschedule seq %d of %s from %d to %d", ref.Seq, w.queueName(ref.Queue), ref.Deadline, to)
}

func (w *world) fireNow(ref deadline.Ref, drop bool) {
	w.call(func() {
		want, _ := w.model.reschedule(ref, 1, drop)
		if got := w.broker.FireNow(ref, drop); got != want {
			w.fail("fire %+v: %v, should be %v", ref, got, want)
		}
	}, "fire seq %d of %s, drop %v", ref.Seq, w.queueName(ref.Queue), drop)
}

// reschedule predicts another deadline and the answer.
func (m *model) reschedule(ref deadline.Ref, to deadline.Instant, drop bool) (deadline.Outcome, deadline.Ref) {
	e := m.find(ref)
	if e == nil {
		return deadline.Gone, ref
	}
	if to != 0 {
		to = max(to, m.nowAt())
	}
	due := to != 0 && m.nowAt() >= to
	if due && e.state == ready {
		e.dueNanos = m.now // due because of the caller
		if drop {
			m.leave(e, expired)
			m.reportSettled(e, deadline.Manual)
			m.count.expiredDropped++
			m.reportExpired(e, deadline.Manual, deadline.Dropped)
		} else {
			m.settle(e, expired, deadline.Manual)
		}
		m.routeDeadLetters(false)
		return deadline.Expired, ref
	}
	if e.tracked {
		m.reportEvent(e, deadline.Event{Kind: deadline.Left})
	}
	e.deadline, e.dueNanos = to, int64(to)*microsecond
	e.instant, e.stale, e.tracked = false, false, false
	if to != 0 {
		m.reportEvent(e, deadline.Event{Kind: deadline.Changed})
	}
	if due {
		return deadline.Held, e.ref()
	}
	return deadline.Rescheduled, e.ref()
}
