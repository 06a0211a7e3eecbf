package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"curfew/monitor"
	"curfew/monitor/alert"
)

const (
	// The rows of the overview's lists.
	overviewForecasts = 8
	overviewMisses    = 12
	overviewAlerts    = 5
)

// overview is what the first page shows.
type overview struct {
	State
	Rates            Rates
	Queues           int
	Ready, Unacked   int
	Consumers        int
	Watched          bool // by a monitor
	Verdict          verdict
	Health           monitor.Health
	Timeline         *timeline
	Next             int64 // Unix ms of the next deadline that is known; 0 none
	Histogram        *histogram
	Late             string // 99 in 100 since the start were no later; "" not known
	Forecasts        []monitor.Forecast
	MoreForecasts    int
	WillMiss, AtRisk int
	Missed           []monitor.Miss
	Alerts           []alert.Status
	Firing, Critical int      // alerts
	Untold           []string // why alerts do not go where they should
	Audited          bool
}

// verdict is the one sentence that says how things are.
type verdict struct {
	Level string // good, warn, bad
	Text  string
	More  []string // why, and what to do
}

func (d *Dashboard) overview(r *http.Request, _ visitor) (view, error) {
	o := &overview{State: d.Broker.State(), Watched: d.Monitor != nil, Audited: d.Audit != nil}
	o.Rates = d.rates.of(time.Now(), o.Totals)
	for _, q := range d.Broker.Queues() {
		o.Queues++
		o.Ready, o.Unacked, o.Consumers = o.Ready+q.Ready, o.Unacked+q.Unacked, o.Consumers+q.Consumers
	}
	if d.Monitor != nil {
		o.watch(d.Monitor, r.URL.Query())
	}
	if d.Alerts != nil {
		o.Alerts = d.Alerts.List()
		for _, a := range o.Alerts {
			if a.State == "firing" {
				o.Firing++
			}
			if a.State == "firing" && a.Severity == "critical" {
				o.Critical++
			}
		}
		o.Untold = d.Alerts.Health()
		o.Alerts = o.Alerts[:min(len(o.Alerts), overviewAlerts)]
	}
	o.judge()
	return o, nil
}

// watch adds what the monitor knows.
func (o *overview) watch(m Monitor, q url.Values) {
	o.Health = m.Health()
	o.Timeline = newTimeline(m, o.Now, o.Health.Pending, q)
	o.Histogram = lateness(m, q)
	o.Late = newHistogram(m.Lateness()).Most
	o.Missed = m.Missed()
	o.Missed = o.Missed[:min(len(o.Missed), overviewMisses)]
	all := m.Forecasts()
	for _, f := range all {
		o.WillMiss += f.WillMiss
		if f.AtRisk {
			o.AtRisk++
		}
	}
	// What will miss comes first; then those with most deadlines.
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b monitor.Forecast) int {
		if a.WillMiss != b.WillMiss {
			return b.WillMiss - a.WillMiss
		}
		return b.Deadlines - a.Deadlines
	})
	o.Forecasts = all[:min(len(all), overviewForecasts)]
	o.MoreForecasts = len(all) - len(o.Forecasts)
}

// judge finds the gravest that can be said.
func (o *overview) judge() {
	v := &o.Verdict
	switch {
	case !o.Watched:
		*v = verdict{"warn", "Deadlines are not watched", []string{"The monitor is off: messages expire only when a consumer meets them. Set CURFEW_MONITOR=true."}}
	case len(o.Health.Stalled) > 0:
		*v = verdict{"bad", "Part of the monitor is stuck", append(o.Health.Reasons, "Restart Curfew if this lasts; messages are safe.")}
	case o.Health.Lag > time.Second:
		*v = verdict{"bad", "Deadlines are fired late, by " + span(o.Health.Lag), o.Health.Reasons}
	case o.Blocked != "":
		*v = verdict{"bad", "Publishers are blocked: " + o.Blocked, []string{"Make room or consume messages. What is queued goes on expiring and being consumed."}}
	case o.Critical > 0:
		*v = verdict{"bad", plural(o.Critical, "critical alert") + " firing", []string{o.Alerts[0].Summary}}
	case o.Health.Degraded():
		*v = verdict{"warn", "Deadlines are met, with less protection than configured",
			append(o.Health.Reasons, "This process fires them by its own index, and nothing is lost; the schedule is brought up to date when it is back.")}
	case len(o.Untold) > 0:
		*v = verdict{"warn", "Deadlines are met, but alerts do not go where they should", o.Untold}
	case o.AtRisk > 0:
		*v = verdict{"warn", fmt.Sprintf("%s about to miss their deadlines in %s", plural(o.WillMiss, "message"), plural(o.AtRisk, "queue")),
			[]string{"Add consumers or make them faster: the forecast below says where."}}
	case o.WillMiss > 0:
		*v = verdict{"warn", plural(o.WillMiss, "message") + " will miss their deadlines if consumers go on like this",
			[]string{"There is time left: the forecast below says where and when."}}
	case o.Firing > 0:
		*v = verdict{"warn", plural(o.Firing, "alert") + " firing", nil}
	default:
		*v = verdict{"good", "Every deadline is watched, none is late", nil}
	}
}
