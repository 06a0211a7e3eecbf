package alert

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Options of Alerts. The zero value only logs.
type Options struct {
	// File is alerts.yaml, with sinks, rules and the dead man's switch, in YAML or JSON; see deploy/alerts.yaml. It
	// is read every ten seconds. Empty: there is none.
	File string
	// URLs are sinks besides those of the file, each named after its scheme; see CheckURL.
	URLs []string
	// Exchange is where sinks with the URL eventsURL publish. It is required if there is one.
	Exchange Exchange
	// Dir is the directory in which silences are kept; empty: they end with the process.
	Dir string
	// Instance names this process in every alert (label instance); may be empty.
	Instance string
	// Stalled returns the parts of this process that hang; empty if it is well. For as long
	// as it is, Alertmanager is sent CurfewWatchdog. nil: there is no CurfewWatchdog.
	Stalled func() []string
	// Holders returns who holds messages past their deadlines now, in all queues; nil: that is not known. It is called when there is
	// an alert about it, at most once a second.
	Holders func() []PastDeadline
	// Log; nil is silent.
	Log *zap.Logger
	// Registerer takes the metrics; nil keeps them private.
	Registerer prometheus.Registerer
}

// defaultEvery is how often the dead man's switch is requested.
const defaultEvery = 30 * time.Second

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	return o
}

// source names the Curfew that notifies, and where its pages are.
type source struct{ instance, externalURL, runbooksURL string }

// incidentID names an alert for services that keep incidents, from its beginning to its end.
func (s source) incidentID(a *alert) string {
	return "curfew/" + cut(s.instance, 64) + "/" + a.fingerprint()
}

// labels are those of an alert as it leaves this process.
func (s source) labels(a *alert) map[string]string {
	labels := a.labels()
	labels["severity"] = a.severity()
	if s.instance != "" {
		labels["instance"] = s.instance
	}
	return labels
}

func (s source) annotations(a *alert) map[string]string {
	annotations := a.annotations()
	for what, page := range s.pages(a.key) {
		annotations[what+"_url"] = page
	}
	return annotations
}

// runbook is the address of the page about an alert; "" if there is none.
func (s source) runbook(k Kind) string {
	if s.runbooksURL == "" || k == Test {
		return ""
	}
	return strings.TrimSuffix(s.runbooksURL, "/") + "/" + k.String() + ".md"
}
