package incident

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"curfew/broker/deadline"
)

// Options of Incidents. The zero value only logs.
type Options struct {
	// File is alerts.yaml, with sinks, rules and the dead man's switch, in YAML or JSON; see deploy/alerts.yaml. It
	// is read every ten seconds. Empty: there is none.
	File string
	// URLs are sinks besides those of the file, each named after its scheme; see CheckURL.
	URLs []string
	// Publish publishes an event for sinks with the URL eventsURL, to a topic exchange. It succeeds even if no queue is bound. It is required if
	// there is such a sink.
	Publish func(context.Context, Publication) error
	// Dir is the directory in which incidents and maintenance windows are kept; empty: they end with the process.
	Dir string
	// Instance names this process in every alert (label instance); may be empty.
	Instance string
	// Stalled returns the parts of this process that hang; empty if it is well. For as long
	// as it is, Alertmanager is sent CurfewWatchdog, and the dead man's switch is requested. nil: there is neither.
	Stalled func() []string
	// Look fills in what is known of the Curfew; nil: nothing is. It is called once a second at most, and must not call back.
	Look func(*State)
	// Hour returns what expired in the last hour, and calls tally when everything counted there is recorded here, and the reverse; nil: it is not known.
	Hour func(tally func()) deadline.Hour
	// Log; nil is silent.
	Log *zap.Logger
	// Registerer takes the metrics; nil keeps them private.
	Registerer prometheus.Registerer
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	if o.Hour == nil {
		o.Hour = func(tally func()) deadline.Hour {
			tally()
			return nil
		}
	}
	return o
}

// source names the Curfew that notifies, and where its pages are.
type source struct{ instance, externalURL, runbooksURL string }

// runbook is the address of the page about a condition; "" if there is none.
func (s source) runbook(alertname string) string {
	if s.runbooksURL == "" {
		return ""
	}
	return strings.TrimSuffix(s.runbooksURL, "/") + "/" + Runbook(alertname)
}
