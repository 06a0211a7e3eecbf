package alert

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

// Options of Alerts. The zero value logs, and nothing else.
type Options struct {
	// WebhookURL is posted to in the format of Alertmanager's webhook receiver; http or
	// https, as all URLs here. Empty: no webhook.
	WebhookURL string
	// WebhookSecret signs what is posted there; empty: nothing is signed.
	WebhookSecret string
	// AlertmanagerURLs are those of every Alertmanager of a cluster, without /api/v2.
	AlertmanagerURLs []string
	// SlackURL is an incoming webhook of Slack.
	SlackURL string
	// PagerDutyKey is the routing key of an Events API v2 integration, PagerDutyURL its
	// endpoint; empty is that of the US region.
	PagerDutyKey, PagerDutyURL string
	// CloudEventsURL is posted CloudEvents 1.0, structured or, with CloudEventsBinary, in
	// binary content mode.
	CloudEventsURL    string
	CloudEventsBinary bool
	// Exchange takes an event per alert, in EventFormat: "json" or "cloudevents". nil:
	// none.
	Exchange    Exchange
	EventFormat string

	// Allow lists hosts and networks (CIDR) that may be connected to beyond what is
	// allowed to any sink; see doc.go, Where sinks may connect to.
	Allow []string
	// RulesFile holds the rules, YAML or JSON; it is looked at every ten seconds. Empty:
	// every event goes to every sink.
	RulesFile string
	// Dir is where silences are kept; empty: they end with the process.
	Dir string
	// GroupBy is "event", "vhost", "queue" or "none", where a rule does not say; empty is
	// "event".
	GroupBy string
	// GroupWait is how long a new group collects before it is told; 0 is 10 s.
	GroupWait time.Duration
	// GroupInterval is the least time between two notifications of a group, and
	// how long nothing must happen for an alert to be over; 0 is 60 s.
	GroupInterval time.Duration
	// RepeatInterval is when what still fires is told again without news; 0 is 4 h.
	RepeatInterval time.Duration
	// RatePerMinute bounds the notifications of a sink, above the first ten; 0 is 60.
	RatePerMinute int

	// Instance names this process in every alert (label instance); may be empty.
	Instance string
	// ExternalURL is where this process can be looked at; may be empty.
	ExternalURL string
	// RunbookBase is where the folder deploy/runbooks can be read, for the annotation
	// runbook_url of each alert; empty: no such annotation.
	RunbookBase string
	// Stalled says which parts of this process hang; empty: it is well. With it
	// Alertmanager is sent CurfewWatchdog for as long as it is. nil: it is not.
	Stalled func() []string
	// Log; nil is silent.
	Log *zap.Logger
	// Registerer takes the metrics; nil keeps them private.
	Registerer prometheus.Registerer

	grouping grouping
	reach    reach
}

const (
	defaultGroupWait = 10 * time.Second
	defaultInterval  = time.Minute
	defaultRepeat    = 4 * time.Hour
	defaultRate      = 60
	pagerDutyURL     = "https://events.pagerduty.com/v2/enqueue"
)

func (o Options) withDefaults() (Options, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	o.GroupWait = orDefault(o.GroupWait, defaultGroupWait)
	o.GroupInterval = orDefault(o.GroupInterval, defaultInterval)
	o.RepeatInterval = orDefault(o.RepeatInterval, defaultRepeat)
	o.RatePerMinute = orDefault(o.RatePerMinute, defaultRate)
	o.PagerDutyURL = orDefault(o.PagerDutyURL, pagerDutyURL)
	o.GroupBy = orDefault(o.GroupBy, groupings[byEvent])
	var ok bool
	if o.grouping, ok = groupingOf(o.GroupBy); !ok {
		return o, fmt.Errorf("alert: there is no grouping %q", o.GroupBy)
	}
	if o.EventFormat = orDefault(o.EventFormat, "json"); o.EventFormat != "json" && o.EventFormat != "cloudevents" {
		return o, fmt.Errorf("alert: there is no format of events %q", o.EventFormat)
	}
	var err error
	o.reach, err = newReach(o.Allow)
	return o, err
}

func orDefault[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

func (o *Options) limit() rate.Limit { return rate.Limit(float64(o.RatePerMinute) / 60) }

// sinkNames are the sinks there are, and sinkSettings what makes them be there, for
// people who run the curfew command.
var (
	sinkNames    = []string{"log", "webhook", "alertmanager", "slack", "pagerduty", "cloudevents", "amqp"}
	sinkSettings = map[string]string{
		"webhook": "CURFEW_ALERT_WEBHOOK_URL", "alertmanager": "CURFEW_ALERT_ALERTMANAGER_URL",
		"slack": "CURFEW_ALERT_SLACK_URL", "pagerduty": "CURFEW_ALERT_PAGERDUTY_ROUTING_KEY",
		"cloudevents": "CURFEW_ALERT_CLOUDEVENTS_URL", "amqp": "CURFEW_ALERT_AMQP",
	}
)

// sinks makes those that are told notifications.
func (o *Options) sinks() (list []sink, err error) {
	var errs []error
	add := func(name, address string, make func(p *poster) sink) {
		if address == "" {
			return
		}
		p, err := o.poster(name, address)
		if err != nil {
			errs = append(errs, err)
			return
		}
		list = append(list, make(p))
	}
	add("webhook", o.WebhookURL, func(p *poster) sink { return &webhook{p, o.source(), o.WebhookSecret} })
	add("slack", o.SlackURL, func(p *poster) sink { return &slack{p, o.source()} })
	if o.PagerDutyKey != "" {
		add("pagerduty", o.PagerDutyURL, func(p *poster) sink { return &pagerDuty{p, o.source(), o.PagerDutyKey} })
	}
	add("cloudevents", o.CloudEventsURL, func(p *poster) sink { return &cloudEvents{p, o.source(), o.CloudEventsBinary} })
	if o.Exchange != nil {
		list = append(list, &exchangeSink{exchange: o.Exchange, source: o.source(), cloudEvents: o.EventFormat == "cloudevents"})
	}
	return list, errors.Join(errs...)
}

// poster posts to an address of the operator's.
func (o *Options) poster(name, address string) (*poster, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The URL is a secret: it is not repeated here.
		return nil, fmt.Errorf("alert: the URL of %s must be http://... or https://", name)
	}
	return &poster{sink: name, url: u.String(), client: o.reach.client(u)}, nil
}

// source is who tells.
type source struct{ instance, externalURL, runbookBase string }

func (o *Options) source() source { return source{o.Instance, o.ExternalURL, o.RunbookBase} }

// labels are those of an alert as it leaves this process.
func (s source) labels(labels map[string]string, severity string) map[string]string {
	labels["severity"] = severity
	if s.instance != "" {
		labels["instance"] = s.instance
	}
	return labels
}

func (s source) annotations(k Kind, annotations map[string]string) map[string]string {
	if url := s.runbook(k); url != "" {
		annotations["runbook_url"] = url
	}
	return annotations
}

// runbook is the address of the page about an alert; "" if there is none.
func (s source) runbook(k Kind) string {
	if s.runbookBase == "" || k == Test {
		return ""
	}
	return strings.TrimSuffix(s.runbookBase, "/") + "/" + k.String() + ".md"
}
