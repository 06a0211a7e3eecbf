package overview

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"curfew/broker/operate"
	"curfew/monitor"
	"curfew/monitor/alert"
	"curfew/monitor/dashboard/internal/chart"
	"curfew/monitor/dashboard/internal/format"
	"curfew/monitor/dashboard/internal/rates"
	"curfew/monitor/dashboard/internal/trends"
	"curfew/monitor/dashboard/internal/ui"
	"curfew/monitor/history"
)

const (
	// The rows of the overview's lists.
	overviewForecasts = 8
	overviewExpiries  = 12
	overviewAlerts    = 5
)

// overview is what the first page shows.
type overview struct {
	operate.State
	Rates            rates.PerSecond
	Queues           int
	Ready, Unacked   int
	Consumers        int
	Watched          bool      // by a monitor
	Verdicts         []verdict // the worst first
	Health           monitor.Health
	Timeline         *timeline
	History          *trends.Card
	Histogram        *histogram
	Late             string // 99 in 100 since the start were no later; "" not known
	Forecasts        []monitor.Forecast
	MoreForecasts    int
	WillMiss, AtRisk int               // messages; queues that need something done
	Risky            int               // queues with messages at risk
	Next             *monitor.Forecast // of the queue whose messages expire first, of those that will; nil: none will
	ExpiredToday     int64             // in the last day; negative: not known
	RecentExpiries   []monitor.RecentExpiry
	Alerts           []alert.Status
	Firing, Critical int      // alerts
	Undelivered      []string // why alerts do not arrive where they should
	Audited          bool
	Remote           bool     // a RabbitMQ has the messages: nothing is known of a store, of publishers and the like
	Troubles         []string // with that RabbitMQ
}

// verdict is one sentence about the state of things.
type verdict struct {
	Level string // bad, warn or good
	Text  string
	More  []string // why, and what to do
}

// Monitor is what the first page needs of the monitor. *monitor.Monitor is one.
type Monitor interface {
	chart.Ahead
	Health() monitor.Health
	Forecasts() []monitor.Forecast
	Lateness() monitor.Lateness
	LatenessWithin(span time.Duration) monitor.Lateness
	RecentExpiries() []monitor.RecentExpiry
}

// Pages are the first page and that of the deadlines in a span.
type Pages struct {
	State      func() operate.State
	Operations *operate.Operations // nil: there is no broker
	Monitor    Monitor             // nil: deadlines are not watched
	Alerts     *alert.Alerts       // nil: none
	History    *history.History    // nil: none
	Audited    bool
	// Troubles are those with the RabbitMQ that has the messages; nil: the broker is in this process.
	Troubles func() []string

	rates rates.Rates
}

// Group has the pages.
func (d *Pages) Group() ui.Group {
	group := ui.Group{
		Pages: map[string]ui.Page{"/": {Title: "Overview", Tab: "/", Live: true, Build: d.build}},
		Files: trends.Files(d.History),
	}
	if d.Operations != nil {
		group.Pages[deadlinesPath] = ui.Page{Title: "Deadlines", Tab: "/", Build: d.deadlines}
	}
	return group
}

func (d *Pages) build(r *http.Request, v ui.Visitor) (ui.View, error) {
	o := &overview{State: d.State(), Watched: d.Monitor != nil, Audited: d.Audited, ExpiredToday: -1}
	if d.History != nil {
		o.ExpiredToday = d.History.ExpiredInADay()
	}
	o.Rates = d.rates.Of(time.Now(), o.Totals)
	if err := o.count(r.Context(), d.Operations, v); err != nil {
		return nil, err
	}
	if d.Monitor != nil {
		o.watch(d.Monitor, r.URL.Query())
		if d.Operations != nil {
			o.Timeline.Link = deadlinesURL
		}
	}
	if d.Troubles != nil {
		o.Remote, o.Troubles = true, d.Troubles()
	}
	if d.Alerts != nil {
		o.Alerts = d.Alerts.List()
		for _, a := range o.Alerts {
			if a.State == firing {
				o.Firing++
			}
			if a.State == firing && a.Severity == critical {
				o.Critical++
			}
		}
		o.Undelivered = d.Alerts.Health()
	}
	o.judge()
	o.Alerts = o.Alerts[:min(len(o.Alerts), overviewAlerts)]
	o.History = trends.New(d.History, "/", r.URL.Query(), "", "")
	return o, nil
}

// count sums up the queues.
func (o *overview) count(ctx context.Context, of *operate.Operations, v ui.Visitor) error {
	if of == nil {
		return nil
	}
	queues, err := of.ListQueues(ctx, v.Actor())
	for _, q := range queues {
		o.Ready, o.Unacked, o.Consumers = o.Ready+q.Ready, o.Unacked+q.Unacked, o.Consumers+q.Consumers
	}
	o.Queues = len(queues)
	return err
}

// watch adds what the monitor knows.
func (o *overview) watch(m Monitor, q url.Values) {
	o.Health = m.Health()
	o.Timeline = newTimeline(m, o.NowMillis, o.Health.Pending, q)
	o.Histogram = lateness(m, q)
	o.Late = chart.NewHistogram(m.Lateness()).Most
	o.RecentExpiries = m.RecentExpiries()
	o.RecentExpiries = o.RecentExpiries[:min(len(o.RecentExpiries), overviewExpiries)]
	all := m.Forecasts()
	for i := range all {
		f := &all[i]
		o.WillMiss += f.WillMiss
		if f.WillMiss > 0 {
			o.Risky++
		}
		if f.AtRisk {
			o.AtRisk++
		}
		if f.WillMiss > 0 && f.FirstMiss != 0 && (o.Next == nil || f.FirstMiss < o.Next.FirstMiss) {
			o.Next = f
		}
	}
	// Queues at risk come first, then those with most deadlines.
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

// judge lists all that is wrong, the worst first; or that nothing is.
func (o *overview) judge() {
	add := func(is bool, level, text string, more ...string) {
		if is {
			o.Verdicts = append(o.Verdicts, verdict{level, text, more})
		}
	}
	add(len(o.Health.Stalled) > 0, bad, "Part of the monitor is stuck", append(o.Health.Reasons, "Restart Curfew if this lasts; messages are safe.")...)
	add(o.Health.Lag > time.Second, bad, "Deadlines are fired late, by "+format.Span(o.Health.Lag), o.Health.Reasons...)
	add(o.Blocked != "", bad, "Resource alarm, publishers are blocked: "+o.Blocked, "Free memory or disk space, or consume messages. Queued messages are still delivered, and still expire.")
	add(o.Critical > 0, bad, format.Plural(o.Critical, "critical alert")+" firing", o.firing(critical)...)
	add(!o.Watched, warn, "Deadlines are not watched", "The monitor is off: messages expire only when a consumer meets them. Set CURFEW_MONITOR=true.")
	away := ""
	if o.Health.Schedule == monitor.ScheduleDown {
		away = "Redis is away: "
	}
	add(len(o.Health.Stalled) == 0 && o.Health.Degraded(), warn, format.Sentence(away+"deadlines are met, with less protection than configured"),
		append(o.Health.Reasons, "This process fires them from its own memory, and nothing is lost. The schedule in Redis is brought up to date when it is back.")...)
	add(len(o.Troubles) > 0, warn, "Not every deadline of RabbitMQ is looked after", o.Troubles...)
	add(len(o.Undelivered) > 0, warn, "Alerts do not arrive where they should", o.Undelivered...)
	switch {
	case o.AtRisk > 0:
		add(true, warn, fmt.Sprintf("%s in %s at risk of expiring", format.Plural(o.WillMiss, "message"), format.Plural(o.Risky, "queue")), o.next("Add consumers or make them faster.")...)
	case o.WillMiss > 0:
		add(true, warn, format.Plural(o.WillMiss, "message")+" at risk: will expire if consumers go on like this", o.next("There is time left.")...)
	}
	add(o.Firing > o.Critical, warn, format.Plural(o.Firing-o.Critical, "alert")+" firing", o.firing("")...)
	add(len(o.Verdicts) == 0, good, "Every deadline is watched, none is late")
}

// next says which queue is the next to miss a deadline, before what to do.
func (o *overview) next(then string) []string {
	if o.Next == nil {
		return []string{then}
	}
	return []string{"The next to expire is in " + o.Next.Queue + ": " + format.Until(o.Next.FirstMiss, o.NowMillis) + ". " + then}
}

// The levels of a verdict.
const (
	bad  = "bad"
	warn = "warn"
	good = "good"
)

// verdictAlerts is how many alerts a verdict names.
const verdictAlerts = 3

// Of alert.Status.
const (
	firing   = "firing"
	critical = "critical"
)

// firing are the summaries of the first firing alerts that are critical, or with "" of those that are not.
func (o *overview) firing(severity string) (list []string) {
	for _, a := range o.Alerts {
		if a.State == firing && (a.Severity == critical) == (severity == critical) {
			list = append(list, a.Summary)
		}
	}
	if more := len(list) - verdictAlerts; more > 0 {
		list = append(list[:verdictAlerts], "and "+format.Number(more)+" more")
	}
	return list
}
