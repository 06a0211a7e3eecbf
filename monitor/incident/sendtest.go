package incident

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// testCondition is the name of what is only a test.
const testCondition = "test"

// Tested is the result of testing one sink.
type Tested struct {
	Sink string
	Err  error
}

// SendTest sends a test to one sink, or with an empty name to each but the log, and returns the
// results. Run need not be running. The error says that there is no such sink.
func (a *Incidents) SendTest(ctx context.Context, sink string) (tested []Tested, err error) {
	names := a.delivery.names()
	if sink != "" && !slices.Contains(names, sink) {
		return nil, fmt.Errorf("unknown sink %q: want one of %s", sink, strings.Join(names, ", "))
	}
	now := time.Now()
	fires := &notice{
		Incident: Incident{ID: "test", Condition: testCondition, Alertname: "CurfewTest", Level: Info, Summary: "Test: this sink works", Since: now},
		source:   a.tracker.view().source, rule: everything, names: map[string]string{"alertname": "CurfewTest"}, at: now, what: "begun",
	}
	over := *fires
	over.Ended, over.what = &now, "over"
	if sink == logName {
		a.delivery.log.notify(fires)
		return []Tested{{Sink: sink}}, nil
	}
	for _, c := range a.delivery.sinks() {
		if sink == "" || c.name == sink {
			err := c.send(ctx, fires)
			if err == nil {
				c.note(nil)
				err = c.send(ctx, &over)
			}
			tested = append(tested, Tested{c.name, err})
		}
	}
	return tested, nil
}
