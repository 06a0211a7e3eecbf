package alert

import (
	"cmp"
	"slices"
	"strings"

	"curfew/broker/deadline"
)

// harm is what an alert means for messages, the worst first.
type harm uint8

const (
	messagesLost   harm = iota // they expired and were dropped
	messagesDied               // they missed their deadlines, or died and have nowhere to go
	messagesAtRisk             // they can still be saved
	noMessages                 // nothing happens to any
)

// harm is that of the alert's event, unless it is known that the messages are gone.
func (s *Status) harm() harm {
	if s.Annotations["action"] == deadline.Dropped.String() {
		return messagesLost
	}
	return kinds[s.kind].harm
}

// states are those of alerts, the most urgent first.
var states = []string{"firing", "pending", "silenced"}

// byUrgency compares two alerts; the more urgent is the lower. What fires comes before what may, and what is about to be over comes last. Then
// the severity decides, which the operator may have set, then the harm, then how many messages it is about, and for how long.
func byUrgency(a, b Status) int {
	state := func(s *Status) int {
		if s.none {
			return len(states)
		}
		return slices.Index(states, s.State)
	}
	severity := func(s *Status) int { return slices.Index(severities, s.Severity) }
	return cmp.Or(cmp.Compare(state(&a), state(&b)), cmp.Compare(severity(&a), severity(&b)), cmp.Compare(a.harm(), b.harm()),
		cmp.Compare(b.count, a.count), a.StartsAt.Compare(b.StartsAt), strings.Compare(a.Summary, b.Summary))
}
