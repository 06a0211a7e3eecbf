package alert

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"curfew/monitor/printable"
)

// PastDeadline describes the messages of a queue that one consumer, or one channel with basic.get, holds past their deadlines.
type PastDeadline struct {
	VHost, Queue    string
	Connection      string // what the client calls itself, or else its address and the server's
	User, Address   string // of the client
	Count           int
	FirstDeadlineAt int64 // Unix ms, the earliest of their deadlines
}

const (
	holdersEvery = time.Second // the least time between two calls of Options.Holders, which looks at all consumers
	maxHolders   = 3           // how many an alert names
)

// held describes the messages of a queue that are held at present.
type held struct {
	count   int64
	worst   int64  // ms by which the longest held one is past its deadline
	holders string // in words
}

// refreshHolders finds out who holds messages now, if there is an alert about that.
func (a *Alerts) refreshHolders(now time.Time) {
	if a.options.Holders == nil || !a.tracker.holdersDue(now) {
		return
	}
	a.tracker.setHolders(a.options.Holders(), now)
}

// holdersDue reports whether an incident needs to name who holds its messages, and the last answer is old.
func (t *tracker) holdersDue(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.holdersAt) < holdersEvery {
		return false
	}
	for k := range t.incidents {
		if k.kind == HeldPastDeadline {
			t.holdersAt = now
			return true
		}
	}
	return false
}

// setHolders records who holds messages, for all queues.
func (t *tracker) setHolders(list []PastDeadline, now time.Time) {
	by := make(map[key][]PastDeadline)
	for _, h := range list {
		k := key{kind: HeldPastDeadline, vhost: h.VHost, queue: h.Queue}
		by[k] = append(by[k], h)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, i := range t.incidents {
		if k.kind == HeldPastDeadline && k.queue != otherQueues {
			i.held = heldBy(by[k], now)
		}
	}
}

func heldBy(list []PastDeadline, now time.Time) *held {
	slices.SortStableFunc(list, func(x, y PastDeadline) int { return cmp.Compare(y.Count, x.Count) })
	of, parts := &held{}, []string(nil)
	for n, h := range list {
		past := now.Sub(time.UnixMilli(h.FirstDeadlineAt))
		of.count, of.worst = of.count+int64(h.Count), max(of.worst, past.Milliseconds())
		if n < maxHolders {
			parts = append(parts, fmt.Sprintf("%q (user %q at %s) holds %d, the longest %s past its deadline",
				h.Connection, h.User, h.Address, h.Count, printable.Span(past.Round(time.Second))))
		}
	}
	if more := len(list) - maxHolders; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	if len(list) == 0 {
		parts = []string{"none is held any longer"}
	}
	of.holders = strings.Join(parts, "; ")
	return of
}
