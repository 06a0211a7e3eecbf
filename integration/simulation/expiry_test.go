package simulation

import (
	"slices"
	"strings"

	"curfew/broker"
)

// propose asks the broker to expire messages as the worst of monitors might: due
// ones and others, of any age, several times, with wrong names and deadlines.
func (w *world) propose() {
	refs := w.randomRefs()
	w.call(func() {
		path := pick(w.rng, []broker.Path{broker.Eager, broker.Index, broker.Stalled})
		want := w.model.expire(refs, path)
		got := w.broker.Expire(refs, path, nil)
		w.compareExpiry(refs, got, want)
	}, "expire %d messages", len(refs))
}

func (w *world) compareExpiry(refs []broker.MessageRef, got, want []broker.ExpireResult) {
	for i, ref := range refs {
		if i >= len(got) || got[i] != want[i] {
			w.fail("expire %+v: answers %+v, should be %+v", ref, got, want)
			return
		}
		if want[i].Outcome == broker.Expired {
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

func (w *world) randomRefs() (refs []broker.MessageRef) {
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
			w.spoil(&ref)
		}
		refs = append(refs, ref)
	}
	if chance(w.rng, 0.5) {
		slices.SortStableFunc(refs, func(a, b broker.MessageRef) int {
			return strings.Compare(w.queueName(a.Queue), w.queueName(b.Queue))
		})
	}
	return refs
}

// spoil makes a reference wrong.
func (w *world) spoil(ref *broker.MessageRef) {
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
		if got := w.broker.TrackDeadlines(slices.Clone(refs)); !slices.Equal(got, want) {
			w.fail("track %+v: kept %+v, should be %+v", refs, got, want)
		}
	}, "track %d messages", len(refs))
}

// list reads all deadlines.
func (w *world) list() { w.call(w.compareDeadlines, "list the deadlines") }
