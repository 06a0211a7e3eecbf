package simulation

import (
	"slices"
	"strings"

	"curfew/broker/deadline"
)

// propose asks the broker to expire messages, as the worst possible monitor might: due and
// other messages, of any age, several times, with wrong names and deadlines.
func (w *world) propose() {
	refs := w.randomRefs()
	w.call(func() {
		path := pick(w.rng, []deadline.Path{deadline.Eager, deadline.Index, deadline.Stalled})
		want := w.model.expire(refs, path)
		got := w.broker.Deadlines().Expire(refs, path, true, nil)
		w.compareExpiry(refs, got, want)
	}, "expire %d messages", len(refs))
}

func (w *world) compareExpiry(refs []deadline.Ref, got, want []deadline.Answer) {
	for i, ref := range refs {
		if i >= len(got) || got[i] != want[i] {
			w.fail("expire %+v: answers %+v, should be %+v", ref, got, want)
			return
		}
		if want[i].Outcome == deadline.Expired {
			w.note("    expired: %v seq %d of %s", ref.Deadline, ref.Seq, w.queueName(ref.Queue))
		}
	}
}

func (w *world) queueName(id uint64) string {
	if q := w.model.byID[id]; q != nil {
		return q.name
	}
	return "a queue that is gone"
}

func (w *world) randomRefs() (refs []deadline.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entries := w.model.live()
	for range w.rng.IntN(6) {
		if len(w.model.all) > 0 {
			entries = append(entries, pick(w.rng, w.model.all))
		}
	}
	w.rng.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	for _, e := range entries[:min(len(entries), 1+w.rng.IntN(20))] {
		if e.queue == nil {
			continue
		}
		ref := e.ref()
		if chance(w.rng, 0.1) {
			w.corrupt(&ref)
		}
		refs = append(refs, ref)
	}
	if chance(w.rng, 0.5) {
		slices.SortStableFunc(refs, func(a, b deadline.Ref) int {
			return strings.Compare(w.queueName(a.Queue), w.queueName(b.Queue))
		})
	}
	return refs
}

// corrupt makes a reference wrong.
func (w *world) corrupt(ref *deadline.Ref) {
	switch w.rng.IntN(5) {
	case 0:
		ref.Deadline--
	case 1:
		ref.Deadline = 0
	case 2:
		ref.Seq++
	case 3:
		ref.Seq |= uint64(1+w.rng.IntN(9)) << 56
	case 4:
		ref.Queue = pick(w.rng, w.model.all).ref().Queue
	}
}

// track asks which messages are still queued.
func (w *world) track() {
	refs := w.randomRefs()
	w.call(func() {
		want := w.model.track(refs)
		if got := w.broker.Deadlines().Track(slices.Clone(refs)); !slices.Equal(got, want) {
			w.fail("track %+v: kept %+v, should be %+v", refs, got, want)
		}
	}, "track %d messages", len(refs))
}

// list reads all deadlines.
func (w *world) list() { w.call(w.compareDeadlines, "list the deadlines") }
