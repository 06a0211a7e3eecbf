package overview

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"curfew/broker/operate"
	"curfew/monitor"
	"curfew/monitor/alert"
	"curfew/monitor/dashboard/internal/chart"
	"curfew/monitor/dashboard/internal/format"
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
	Published        operate.Rate
	Delivered        operate.Rate
	Queues           int
	Ready, Unacked   int
	Consumers        int
	Watched          bool      // there is a monitor
	Verdicts         []verdict // the worst first
	Health           monitor.Health
	Timeline         *timeline
	History          *trends.Card
	Histogram        *histogram
	Late             string // 99 in 100 since the start were not later than this; "": not known
	Forecasts        []monitor.Forecast
	MoreForecasts    int
	WillMiss, AtRisk int               // messages; queues that need action
	Risky            int               // queues with messages at risk
	Next             *monitor.Forecast // of the queue where a message will expire first; nil: none will
	ExpiredToday     int64             // in the last day; negative: not known
	RecentExpiries   []monitor.RecentExpiry
	Alerts           []alert.Status
	Firing, Critical int      // alerts
	Undelivered      []string // why alerts do not arrive where they should
	Audited          bool
	Broker           string   // the AMQP URL for clients, as far as it is known; "": there is no broker here
	Site             string   // the URL of this dashboard
	Remote           bool     // a RabbitMQ has the messages: nothing is known about the store, publishers and the like
	Troubles         []string // with that RabbitMQ
}

// verdict is one sentence about the state of Curfew.
type verdict struct {
	Level string // bad, warn or good
	Text  string
	More  []line // why, and what to do
}

// line is a sentence below a verdict.
type line struct {
	Text        string
	VHost, Name string // of a queue, shown before the text; "": none
	Faint       bool   // the exact error, which the verdict can be understood without
}

func lines(texts ...string) (list []line) {
	for _, text := range texts {
		list = append(list, line{Text: text})
	}
	return list
}

// Monitor is what the first page needs of the monitor. *monitor.Monitor is one.
type Monitor interface {
	chart.Pending
	Health() monitor.Health
	Forecasts() []monitor.Forecast
	Lateness() monitor.Lateness
	LatenessWithin(span time.Duration) monitor.Lateness
	RecentExpiries() []monitor.RecentExpiry
}

// Pages are the first page and the page of the deadlines in a span.
type Pages struct {
	State      func() operate.State
	Operations *operate.Operations // nil: there is no broker
	Monitor    Monitor             // nil: deadlines are not watched
	Alerts     *alert.Alerts       // nil: none
	History    *history.History    // nil: none
	Audited    bool
	AMQP       *net.TCPAddr // where clients connect; nil: not known
	// Troubles are the problems with the RabbitMQ that has the messages; nil: the broker is in this process.
	Troubles func() []string
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
	if err := o.count(r.Context(), d.Operations, v); err != nil {
		return nil, err
	}
	o.address(r, d.AMQP)
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

// address finds out how this Curfew is reached. If it listens on all addresses, that is by the name that the browser uses.
func (o *overview) address(r *http.Request, amqp *net.TCPAddr) {
	o.Site = "http://" + r.Host
	if r.TLS != nil {
		o.Site = "https://" + r.Host
	}
	if amqp == nil {
		return
	}
	host := amqp.IP.String()
	if amqp.IP.IsUnspecified() {
		host = (&url.URL{Host: r.Host}).Hostname()
	}
	o.Broker = "amqp://" + net.JoinHostPort(host, strconv.Itoa(amqp.Port))
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
	of.Rates().Refresh()
	rates := of.Rates().Of(operate.TotalKey{}, of.Totals())
	o.Published, o.Delivered = rates["publish"], rates["deliver_get"]
	return err
}

// watch adds what the monitor knows.
func (o *overview) watch(m Monitor, q url.Values) {
	o.Health = m.Health()
	all := slices.Clone(m.Forecasts())
	o.Timeline = newTimeline(m, o.NowMillis, o.Health.Pending, q)
	o.Histogram = lateness(m, q)
	o.Late = chart.NewHistogram(m.Lateness()).Most
	o.RecentExpiries = m.RecentExpiries()
	o.RecentExpiries = o.RecentExpiries[:min(len(o.RecentExpiries), overviewExpiries)]
	var soon, last int64
	for i := range all {
		f := &all[i]
		o.WillMiss += f.WillMiss
		last = max(last, f.LastMiss)
		if f.WillMiss > 0 {
			o.Risky++
		}
		if f.AtRisk {
			o.AtRisk++
			soon += int64(f.WillMiss)
		}
		if f.WillMiss > 0 && f.FirstMiss != 0 && (o.Next == nil || f.FirstMiss < o.Next.FirstMiss) {
			o.Next = f
		}
	}
	if last <= o.Timeline.End() {
		o.Timeline.Agree(int64(o.WillMiss)-soon, soon)
	}
	if o.Next != nil {
		next := *o.Next // the list is sorted now
		o.Next = &next
	}
	// Queues that need action come first, then those whose first message expires earlier, then those with more deadlines.
	slices.SortStableFunc(all, func(a, b monitor.Forecast) int { return cmp.Or(byUrgency(a, b), cmp.Compare(b.Deadlines, a.Deadlines)) })
	o.Forecasts = all[:min(len(all), overviewForecasts)]
	o.MoreForecasts = len(all) - len(o.Forecasts)
}

func byUrgency(a, b monitor.Forecast) int {
	urgency := func(f monitor.Forecast) (int, int64) {
		switch {
		case f.AtRisk:
			return 0, f.FirstMiss
		case f.WillMiss > 0:
			return 1, f.FirstMiss
		}
		return 2, 0
	}
	inA, atA := urgency(a)
	inB, atB := urgency(b)
	return cmp.Or(cmp.Compare(inA, inB), cmp.Compare(atA, atB))
}

// judge lists all that is wrong, the worst first, or says that nothing is wrong.
func (o *overview) judge() {
	tell := func(is bool, level, text string, more []line) {
		if is {
			o.Verdicts = append(o.Verdicts, verdict{level, text, more})
		}
	}
	add := func(is bool, level, text string, more ...string) { tell(is, level, text, lines(more...)) }
	add(len(o.Health.Stalled) > 0, bad, "Part of the monitor is stuck", append(slices.Clone(o.Health.Reasons), "Restart Curfew if this lasts; messages are safe.")...)
	add(o.Health.Lag > time.Second, bad, "Deadlines are fired late, by "+format.Span(o.Health.Lag), o.Health.Reasons...)
	add(o.Blocked != "", bad, "Resource alarm, publishers are blocked: "+o.Blocked, "Free memory or disk space, or consume messages. Queued messages are still delivered, and still expire.")
	add(o.DiskSilent > 0, bad, "The disk has not answered for "+format.Span(o.DiskSilent.Round(time.Second)),
		"Confirms of persistent messages wait for it. Deliveries and deadlines go on.", "Check the volume and the machine's log.")
	add(o.Health.Orphans > 0, bad, "The data folder was new at this start, and "+format.Plural(int(o.Health.Orphans), "message")+" of an earlier run may be missing",
		"Redis had their deadlines. If they should be here, stop Curfew, mount the volume or correct CURFEW_DATA_DIR, and start it again.", "If not, ignore this: it ends with the next start.")
	tell(o.Critical > 0, bad, format.Plural(o.Critical, "critical alert")+" firing", o.firing(critical))
	add(!o.Watched, warn, "Deadlines are not watched", "The monitor is off: messages expire only when a consumer meets them. Set CURFEW_MONITOR=true.")
	o.risk(tell)
	tell(len(o.Health.Stalled) == 0 && o.Health.Degraded(), warn, o.lessProtected(), o.degraded())
	add(len(o.Troubles) > 0, warn, "Some deadlines in RabbitMQ are not watched", o.Troubles...)
	add(len(o.Undelivered) > 0, warn, "Alerts do not arrive where they should", o.Undelivered...)
	tell(o.Firing > o.Critical, warn, format.Plural(o.Firing-o.Critical, "alert")+" firing", o.firing(""))
	add(len(o.Verdicts) == 0, good, "All deadlines are watched, and none is late")
	slices.SortStableFunc(o.Verdicts, func(a, b verdict) int { return cmp.Compare(levels[a.Level], levels[b.Level]) })
}

// risk adds how many messages are at risk, and which are the first.
func (o *overview) risk(tell func(is bool, level, text string, more []line)) {
	next := func(then string) []line {
		if o.Next == nil {
			return lines(then)
		}
		return []line{{VHost: o.Next.VHost, Name: o.Next.Queue, Text: "is the next, " + format.Until(o.Next.FirstMiss, o.NowMillis) + ". " + then}}
	}
	text := fmt.Sprintf("%s in %s at risk of expiring", format.Plural(o.WillMiss, "message"), format.Plural(o.Risky, "queue"))
	tell(o.AtRisk > 0, bad, text, next("Add consumers or make them faster."))
	tell(o.AtRisk == 0 && o.WillMiss > 0, warn, text+" if consumers go on like this", next("There is time left."))
}

// lessProtected is what is degraded, and since when.
func (o *overview) lessProtected() string {
	const text = "deadlines are met, with less protection than configured"
	if o.Health.Schedule != monitor.ScheduleDown {
		return format.Sentence(text)
	}
	since := o.Health.Since.UnixMilli()
	return "Redis has been away for " + format.Millis(max(o.NowMillis-since, 0)) + ", since " + format.Clock(since) + " UTC: " + text
}

// degraded is what that means, what to do, and the errors.
func (o *overview) degraded() (list []line) {
	if o.Health.Schedule == monitor.ScheduleDown {
		list = lines("Nothing is lost: this process fires deadlines from its own memory, and brings the schedule in Redis up to date when it is back.",
			"Make sure that Redis runs, has memory left, and can be reached at the address in CURFEW_REDIS_URL. Curfew connects again by itself.")
	}
	for _, reason := range o.Health.Reasons {
		list = append(list, line{Text: reason, Faint: len(list) > 0})
	}
	return list
}

// The levels of a verdict.
const (
	bad  = "bad"
	warn = "warn"
	good = "good"
)

// levels is the order of the levels, the worst first.
var levels = map[string]int{bad: 0, warn: 1, good: 2}

// verdictAlerts is how many alerts a verdict names.
const verdictAlerts = 3

// Of alert.Status.
const (
	firing   = "firing"
	critical = "critical"
)

// firing is what the first firing alerts of a severity have found; "": those that are not critical.
func (o *overview) firing(severity string) (list []line) {
	for _, a := range o.Alerts {
		if a.State == firing && (a.Severity == critical) == (severity == critical) {
			text := "· " + a.Finding
			if a.Labels["queue"] == "" {
				text = format.Sentence(a.Summary)
			}
			list = append(list, line{VHost: a.Labels["vhost"], Name: a.Labels["queue"], Text: text + " · since " + format.Clock(a.StartsAt.UnixMilli()) + " UTC"})
		}
	}
	if more := len(list) - verdictAlerts; more > 0 {
		list = append(list[:verdictAlerts], line{Text: "and " + format.Number(more) + " more"})
	}
	return list
}
