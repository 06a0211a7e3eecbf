package overview

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor"
	"curfew/monitor/history"
	"curfew/monitor/incident"
)

const (
	// The rows of the overview's lists.
	overviewForecasts = 8
	overviewExpiries  = 12
	overviewOver      = 3
	overviewChanges   = 5
	// changedFor is how far back the overview tells what changed.
	changedFor = 6 * time.Hour
	// overFor is how long the overview tells of an incident that is over.
	overFor = 15 * time.Minute
)

// overview is what the first page shows.
type overview struct {
	operate.State
	Published        operate.Rate
	Delivered        operate.Rate
	Queues           int
	Ready, Unacked   int
	Consumers        int
	Watched          bool // there is a monitor
	Verdict          incident.Verdict
	Incidents        []incident.Incident // that are not over, the worst first
	Over             []incident.Incident // that are over for at most overFor
	Changed          []history.Mark      // in the last hours, the latest first; those about the incidents go before others
	Health           monitor.Health
	Timeline         *timeline
	History          *Trends
	Histogram        *histogram
	Late, Latest     string // 99 in 100 since the start were not later than this, and none than that; "": not known
	Forecasts        []monitor.Forecast
	MoreForecasts    int
	WillMiss         int               // messages that will expire
	WillLose, AtRisk int               // those of them that matter; queues that need action
	Risky            int               // queues with messages at risk
	Next             *monitor.Forecast // of the queue that will be the next to lose messages, of those that lose none already; nil: none will
	ExpiredToday     int64             // in the last day; negative: not known
	RecentExpiries   []monitor.RecentExpiry
	meant, saved     map[[2]string]bool          // queues in which an expiry is no loss, and those that dead-letter
	losing           map[incident.QueueName]bool // queues in incidents that cost messages now
	willMiss         map[[2]string]int           // messages at risk, by queue
	Fleet            *fleet                      // nil: there are no queues
	Audited          bool
	Broker           string // the AMQP URL for clients, as far as it is known; "": there is no broker here
	Site             string // the URL of this dashboard
	Remote           bool   // a RabbitMQ has the messages: nothing is known about the store, publishers and the like
}

// Monitor is what the first page needs of the monitor. *monitor.Monitor is one.
type Monitor interface {
	ui.Pending
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
	Incidents  *incident.Incidents
	History    *history.History // nil: none
	Audited    bool
	AMQP       *net.TCPAddr // where clients connect; nil: not known
	Remote     bool         // a RabbitMQ has the messages
}

// Group has the pages.
func (d *Pages) Group() ui.Group {
	group := ui.Group{
		Pages: map[string]ui.Page{"/": {Title: "Overview", Tab: "/", Live: true, Build: d.build}},
		Files: HistoryFiles(d.History),
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
	queues, err := o.count(r.Context(), d.Operations, v)
	if err != nil {
		return nil, err
	}
	o.address(r, d.AMQP)
	o.Incidents, o.losing = d.Incidents.List(), map[incident.QueueName]bool{}
	var affected [][2]string // the worst first
	for _, i := range o.Incidents {
		for _, q := range i.Worst {
			affected = append(affected, [2]string{q.VHost, q.Queue})
			if q.Toll > 0 {
				o.losing[incident.QueueName{VHost: q.VHost, Name: q.Queue}] = true
			}
		}
	}
	if d.History != nil {
		o.Changed = d.History.Changes(changedFor, overviewChanges, affected)
	}
	o.Verdict = incident.VerdictOf(o.Incidents)
	for _, i := range d.Incidents.Over() {
		if i.Level != incident.Info && time.Since(*i.Ended) < overFor && len(o.Over) < overviewOver {
			o.Over = append(o.Over, i)
		}
	}
	if d.Monitor != nil {
		o.watch(d.Monitor, r.URL.Query())
		if d.Operations != nil {
			o.Timeline.Link = deadlinesURL
		}
	}
	o.Remote = d.Remote
	if len(queues) > 0 {
		o.Fleet = newFleet(queues, o.willMiss, d.Incidents.Queues(), d.Operations.Rates())
	}
	o.History = NewTrends(d.History, "/", r.URL.Query(), "", "")
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

// count sums up the queues, and returns them.
func (o *overview) count(ctx context.Context, of *operate.Operations, v ui.Visitor) ([]*operate.Queue, error) {
	if of == nil {
		return nil, nil
	}
	queues, err := of.ListQueues(ctx, v.Actor())
	o.meant, o.saved = map[[2]string]bool{}, map[[2]string]bool{}
	for _, q := range queues {
		o.saved[[2]string{q.VHost, q.Name}] = q.DeadLetters
		if !matters(q) {
			o.meant[[2]string{q.VHost, q.Name}] = true
		}
		o.Ready, o.Unacked, o.Consumers = o.Ready+q.Ready, o.Unacked+q.Unacked, o.Consumers+q.Consumers
	}
	o.Queues = len(queues)
	of.Rates().Refresh()
	rates := of.Rates().Of(operate.TotalKey{}, of.Totals())
	o.Published, o.Delivered = rates["publish"], rates["deliver_get"]
	return queues, err
}

// watch adds what the monitor knows.
func (o *overview) watch(m Monitor, q url.Values) {
	o.Health = m.Health()
	all := slices.Clone(m.Forecasts())
	o.Timeline = newTimeline(m, o.NowMillis, o.Health.Pending, q)
	o.Histogram = lateness(m, q)
	late := ui.NewHistogram(m.Lateness())
	o.Late, o.Latest = late.Most, late.All
	o.RecentExpiries = m.RecentExpiries()
	o.RecentExpiries = o.RecentExpiries[:min(len(o.RecentExpiries), overviewExpiries)]
	o.willMiss = map[[2]string]int{}
	var soon, last int64
	for i := range all {
		f := &all[i]
		o.WillMiss += f.WillMiss
		last = max(last, f.LastMiss)
		if f.WillMiss > 0 {
			o.willMiss[[2]string{f.VHost, f.Queue}] = f.WillMiss
			o.Risky++
		}
		if f.AtRisk {
			soon += int64(f.WillMiss)
		}
		if of := [2]string{f.VHost, f.Queue}; !o.meant[of] {
			o.WillLose += f.WillMiss
			if f.AtRisk {
				o.AtRisk++
			}
			if f.WillMiss > 0 && f.FirstMiss > o.NowMillis && !o.losing[incident.QueueName{VHost: f.VHost, Name: f.Queue}] && (o.Next == nil || o.before(f, o.Next)) {
				o.Next = f
			}
		}
	}
	if last <= o.Timeline.End() {
		o.Timeline.Agree(int64(o.WillMiss)-soon, soon)
	}
	if o.Next != nil {
		next := *o.Next // the list is sorted now
		o.Next = &next
	}
	lost := func(f *monitor.Forecast) int {
		if f.WillMiss > 0 && !o.meant[[2]string{f.VHost, f.Queue}] {
			return 0
		}
		return 1
	}
	// Queues in which an expiry is a loss come first, of these the ones that need action, then those whose first message expires earlier, then those with more deadlines.
	slices.SortStableFunc(all, func(a, b monitor.Forecast) int {
		return cmp.Or(cmp.Compare(lost(&a), lost(&b)), byUrgency(a, b), cmp.Compare(b.Deadlines, a.Deadlines))
	})
	o.Forecasts = all[:min(len(all), overviewForecasts)]
	o.MoreForecasts = len(all) - len(o.Forecasts)
}

// before says that the loss of a is to be told rather than that of b: what is gone for good before what is dead-lettered, then what comes first.
func (o *overview) before(a, b *monitor.Forecast) bool {
	savedA, savedB := o.saved[[2]string{a.VHost, a.Queue}], o.saved[[2]string{b.VHost, b.Queue}]
	if savedA != savedB {
		return savedB
	}
	return a.FirstMiss < b.FirstMiss
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

// bannerIncidents is how many incidents the banner shows: the first bannerWhole with bannerQueues of their queues and what to do, the
// others on a line each, so that on a bad night all are seen at once.
const (
	bannerIncidents = 12
	bannerWhole     = 2
	bannerQueues    = 3
)

// shown are the incidents of the banner, and how many more there are.
func (o *overview) shown() (list []incident.Incident, more int) {
	list = o.Incidents[:min(len(o.Incidents), bannerIncidents)]
	return list, len(o.Incidents) - len(list)
}
