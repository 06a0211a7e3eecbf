package alert

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMostUrgentFirst: of two alerts the first is the more urgent, whatever else speaks for the second.
func TestMostUrgentFirst(t *testing.T) {
	const hour = time.Hour
	at := func(ago time.Duration) time.Time { return time.Unix(1_000_000, 0).Add(-ago) }
	gone := map[string]string{"action": "dropped"}
	for name, pair := range map[string][2]Status{
		"it fires":                   {{State: "firing", Severity: "info", kind: ScheduleDegraded}, {State: "pending", Severity: "critical", kind: DeadlineMissed, Annotations: gone, count: 9}},
		"it is not silenced":         {{State: "pending", Severity: "warning", kind: AtRisk}, {State: "silenced", Severity: "critical", kind: DeadlineMissed, Annotations: gone}},
		"it is not about to be over": {{State: "silenced", Severity: "warning", kind: AtRisk}, {State: "firing", Severity: "critical", kind: HeldPastDeadline, none: true}},
		"severity":                   {{State: "firing", Severity: "critical", kind: ScheduleDegraded}, {State: "firing", Severity: "warning", kind: DeadlineMissed, Annotations: gone, count: 9}},
		"messages are lost":          {{State: "firing", Severity: "warning", kind: DeadlineMissed, Annotations: gone, count: 1}, {State: "firing", Severity: "warning", kind: DeadlineMissed, count: 9}},
		"messages died":              {{State: "firing", Severity: "warning", kind: DeadlineMissed, count: 1}, {State: "firing", Severity: "warning", kind: AtRisk, count: 9}},
		"messages are at risk":       {{State: "firing", Severity: "warning", kind: HeldPastDeadline, count: 1}, {State: "firing", Severity: "warning", kind: ScheduleDegraded}},
		"more messages":              {{State: "firing", Severity: "warning", kind: AtRisk, count: 9, StartsAt: at(0)}, {State: "firing", Severity: "warning", kind: AtRisk, count: 1, StartsAt: at(hour)}},
		"longer":                     {{State: "firing", Severity: "warning", kind: AtRisk, count: 1, StartsAt: at(hour)}, {State: "firing", Severity: "warning", kind: AtRisk, count: 1, StartsAt: at(0)}},
	} {
		require.Negative(t, byUrgency(pair[0], pair[1]), name)
		require.Positive(t, byUrgency(pair[1], pair[0]), name)
	}
}

// TestListIsByUrgency: firing alerts come before waiting ones; of these, what has happened before what may happen; last come messages that are no longer held.
func TestListIsByUrgency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, func(o *Options) { o.Holders = func() []PastDeadline { return nil } })
		s.Record(heldEvent(2000, false))
		s.Degraded("Redis is away")
		s.AtRisk(Risk{VHost: "/", Queue: "risky", Count: 5000})
		s.Record(Event{Kind: DeadlineMissed, VHost: "/", Queue: "a", Action: "dead_lettered", Stats: Stats{Count: 70}})
		s.Record(Event{Kind: DeadlineMissed, VHost: "/", Queue: "b", Action: "dropped", Stats: Stats{Count: 1}})
		time.Sleep(15 * time.Second)
		s.Record(Event{Kind: DeadLetterUnroutable, VHost: "/", Queue: "critical", Stats: Stats{Count: 1}})
		var list []string
		for _, a := range s.List() {
			list = append(list, a.State+" "+a.Event+" "+a.Labels["queue"])
		}
		require.Equal(t, []string{
			"firing deadline_missed b", "firing deadline_missed a", "firing at_risk risky", "firing schedule_degraded ", "pending dead_letter_unroutable critical",
		}, list[:5])
		require.Contains(t, list[5], "held_past_deadline")
	})
}
