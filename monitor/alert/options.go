package alert

import (
	"cmp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
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
	// RatePerMinute bounds the notifications of a sink, above the first ten; 0 is 60.
	RatePerMinute int

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

// Defaults of alerts.yaml.
const (
	defaultWait     = 10 * time.Second
	defaultInterval = time.Minute
	defaultRepeat   = 4 * time.Hour
	defaultEvery    = 30 * time.Second
	defaultRate     = 60
)

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	o.RatePerMinute = cmp.Or(o.RatePerMinute, defaultRate)
	return o
}

func (o *Options) limit() rate.Limit { return rate.Limit(float64(o.RatePerMinute) / 60) }

// source names the Curfew that notifies, and where its pages are.
type source struct{ instance, externalURL, runbooksURL string }

// groupID names the group of a notification for services that keep incidents. It is the same for all of a group.
func (s source) groupID(n *notification) string {
	return "curfew/" + cut(s.instance, 64) + "/" + n.fingerprint()
}

// labels are those of an alert as it leaves this process.
func (s source) labels(labels map[string]string, severity string) map[string]string {
	labels["severity"] = severity
	if s.instance != "" {
		labels["instance"] = s.instance
	}
	return labels
}

func (s source) annotations(k key, annotations map[string]string) map[string]string {
	for what, page := range s.pages(k) {
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
