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

// SendTest sends a test to one sink, or with an empty name to each but the log, and returns the
// results. Run need not be running. The error says that there is no such sink.
func (a *Incidents) SendTest(ctx context.Context, sink string) (results TestResults, err error) {
	names := a.delivery.names()
	results.Sinks = map[string]string{}
	if sink != "" && !slices.Contains(names, sink) {
		return results, fmt.Errorf("unknown sink %q: want one of %s", sink, strings.Join(names, ", "))
	}
	now := time.Now()
	fires := &notice{
		Incident: Incident{ID: "test", Condition: testCondition, Alertname: "CurfewTest", Level: Info, Summary: "Test: this sink works", Since: now},
		source:   a.tracker.view.Load().source, rule: everything, names: map[string]string{"alertname": "CurfewTest"}, at: now, what: "begun",
	}
	over := *fires
	over.Ended, over.what = &now, "over"
	if sink == logName {
		a.delivery.write(fires)
		results.Sinks[sink] = "ok"
	}
	for _, c := range a.delivery.sinks() {
		if sink == "" || c.name == sink {
			err := c.send(ctx, fires)
			if err == nil {
				c.note(nil)
				err = c.send(ctx, &over)
			}
			if results.Sinks[c.name] = "ok"; err != nil {
				results.Sinks[c.name] = err.Error()
			}
		}
	}
	return results, nil
}
