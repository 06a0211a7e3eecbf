package alert

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// everything is the rule whose notifications go to every sink.
var everything = &rule{name: "curfew", everywhere: true}

// Tested is the result of testing one sink.
type Tested struct {
	Sink string
	Err  error
}

// SendTest sends a test to one sink, or with an empty name to each but the log, and returns the
// results. Run need not be running. The error says that there is no such sink.
func (a *Alerts) SendTest(ctx context.Context, sink string) (tested []Tested, err error) {
	names := a.delivery.names()
	if sink != "" && !slices.Contains(names, sink) {
		return nil, fmt.Errorf("unknown sink %q: want one of %s", sink, strings.Join(names, ", "))
	}
	now := time.Now()
	fires := &alert{key: key{kind: Test}, rule: everything, detail: "this sink works", at: now, startsAt: now}
	over := *fires
	over.endsAt = now
	if sink == logName {
		a.delivery.log.notify(fires)
		return []Tested{{Sink: sink}}, nil
	}
	for _, c := range a.delivery.sinks() {
		if sink == "" || c.name() == sink {
			err := c.send(ctx, fires)
			if err == nil {
				err = c.send(ctx, &over)
			}
			tested = append(tested, Tested{c.name(), err})
		}
	}
	return tested, nil
}
