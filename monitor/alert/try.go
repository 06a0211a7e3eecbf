package alert

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// everything is the rule of what goes to every sink.
var everything = &rule{name: "curfew", everywhere: true}

// Tried is what became of a test of one sink.
type Tried struct {
	Sink string `json:"sink"`
	Err  error  `json:"-"`
}

// Try sends a test to one sink, or with an empty name to each that is configured but
// the log, and says how that went. Run need not run. Its error says that there is no
// such sink.
func (a *Alerts) Try(ctx context.Context, sink string) (tried []Tried, err error) {
	if sink != "" && !slices.Contains(a.sinks, sink) {
		if setting, known := sinkSettings[sink]; known {
			return nil, fmt.Errorf("the sink %s is not configured; set %s", sink, setting)
		}
		return nil, fmt.Errorf("there is no sink %q; there are %s", sink, strings.Join(sinkNames, ", "))
	}
	now := time.Now()
	fires := newNotification(everything, groupKey{rule: everything.name, kind: Test}, now)
	fires.add(alert{key: key{kind: Test}, detail: "this sink works", severity: kinds[Test].severity, startsAt: now, fresh: true})
	over := newNotification(everything, fires.key, now)
	ended := fires.alerts[0]
	ended.endsAt = now
	over.add(ended)
	if sink == "log" {
		a.log.tell(fires)
		return []Tried{{Sink: sink}}, nil
	}
	for _, c := range a.channels {
		if sink == "" || c.name() == sink {
			err := c.send(ctx, fires)
			if err == nil {
				err = c.send(ctx, over)
			}
			tried = append(tried, Tried{c.name(), err})
		}
	}
	return tried, nil
}
