package delay

import (
	"slices"
	"strings"
	"time"

	"curfew/broker/deadline"
)

// Waiting is a message that waits.
type Waiting struct {
	ID    string // its message-id; "": it cannot be named
	Key   string
	To    string // the queue that it goes to; "": wherever the queue's dead letters go
	Due   deadline.Instant
	Known Known
}

// List returns up to limit messages that are due before an instant, 0 for any, the first to be due first. With an id, it returns only those that have it.
func (k *Keeper) List(before deadline.Instant, id string, limit int) (all []Waiting) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found []*held
	for _, e := range k.core.waiting {
		if (before == 0 || e.due < before) && (id == "" || e.id == id) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *held) int {
		if a.due != b.due {
			return int(max(-1, min(1, a.due-b.due)))
		}
		return strings.Compare(a.id, b.id)
	})
	for _, e := range found[:min(limit, len(found))] {
		all = append(all, Waiting{e.id, e.key, e.to, e.due, e.known})
	}
	return all
}

// Cancel acknowledges the waiting messages with an id, which are never delivered.
func (k *Keeper) Cancel(id string) Outcome {
	return k.do(func(c *core, now deadline.Instant) Outcome { return c.cancelHere(now, id) })
}

// Reschedule has the waiting messages with an id wait for that long from now, 0 for no longer.
func (k *Keeper) Reschedule(id string, in time.Duration) Outcome {
	return k.do(func(c *core, now deadline.Instant) Outcome { return c.reschedule(id, now.Add(max(0, in))) })
}

func (k *Keeper) do(change func(*core, deadline.Instant) Outcome) Outcome {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.signal()
	return change(k.core, k.o.Now())
}
