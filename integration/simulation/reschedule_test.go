package simulation

import (
	"curfew/broker"
)

// reschedule gives a few messages, of any age, other deadlines: earlier, later, none,
// or now; or has them expire at once, dead-lettered or dropped.
func (w *world) reschedule() {
	refs := w.randomRefs()
	for _, ref := range refs[:min(len(refs), 1+w.rng.IntN(3))] {
		switch w.rng.IntN(5) {
		case 0:
			w.fireNow(ref, chance(w.rng, 0.3))
		case 1:
			w.rescheduleTo(ref, 0)
		default:
			w.rescheduleTo(ref, w.now()/microsecond+(randomTTL(w.rng)-2)*1000+w.rng.Int64N(1000))
		}
	}
}

func (w *world) rescheduleTo(ref broker.MessageRef, deadline int64) {
	w.call(func() {
		want, wantRef := w.model.reschedule(ref, deadline, false)
		got, gotRef := w.broker.Reschedule(ref, deadline)
		if got != want || gotRef != wantRef {
			w.fail("reschedule %+v: %v %+v, should be %v %+v", ref, got, gotRef, want, wantRef)
		}
	}, "reschedule seq %d of %s from %d to %d", ref.Seq, w.queueName(ref.Queue), ref.Deadline, deadline)
}

func (w *world) fireNow(ref broker.MessageRef, drop bool) {
	w.call(func() {
		want, _ := w.model.reschedule(ref, 1, drop)
		if got := w.broker.FireNow(ref, drop); got != want {
			w.fail("fire %+v: %v, should be %v", ref, got, want)
		}
	}, "fire seq %d of %s, drop %v", ref.Seq, w.queueName(ref.Queue), drop)
}

// reschedule predicts another deadline, and what is said of it.
func (m *model) reschedule(ref broker.MessageRef, deadline int64, drop bool) (broker.ExpireOutcome, broker.MessageRef) {
	e := m.find(ref)
	if e == nil {
		return broker.Gone, ref
	}
	if deadline != 0 {
		deadline = max(deadline, m.nowAt())
	}
	due := deadline != 0 && m.nowAt() >= deadline
	if due && e.state == ready {
		e.dueNanos = m.now // by whoever asks for it
		if drop {
			m.leave(e, expired)
			m.tellSettled(e, broker.Manual)
			m.count.expiredDropped++
			m.tellExpired(e, broker.Manual, broker.Dropped)
		} else {
			m.settle(e, expired, broker.Manual)
		}
		m.bury(false)
		return broker.Expired, ref
	}
	if e.tracked {
		m.tell(e, broker.DeadlineEvent{Kind: broker.DeadlineSettled})
	}
	e.deadline, e.dueNanos = deadline, deadline*microsecond
	e.instant, e.stale, e.tracked = false, false, false
	if deadline != 0 {
		m.tell(e, broker.DeadlineEvent{Kind: broker.DeadlineRescheduled})
	}
	if due {
		return broker.Held, e.ref()
	}
	return broker.Rescheduled, e.ref()
}
