package overview

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor"
	"curfew/monitor/changes"
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
	Published       operate.Rate
	Delivered       operate.Rate
	Queues          int
	Ready, Unacked  int
	Consumers       int
	Watched         bool      // there is a monitor
	LookedAt        time.Time // when the incidents and losses were as they are shown
	Verdict         incident.Verdict
	Incidents       []incident.Incident // that are not over, the worst first
	Over            []incident.Incident // that are over for at most overFor
	Changed         []history.Mark      // in the last hours, the latest first; those about the incidents go before others
	Health          monitor.Health
	Timeline        *timeline
	History         *Trends
	Histogram       *histogram
	Late, Latest    string // 99 in 100 since the start were not later than this, and none than that; "": not known
	Forecasts       []deadline.Forecast
	MoreForecasts   int
	AtRisk, AsMeant int                // messages that will expire: where that is a loss, and where it is none
	NearlyDue       bool               // some of those at risk are
	Next            *deadline.Forecast // of the queue that will be the next to lose messages, of those that are in no incident; nil: none will
	Losses          operate.Losses     // in the last hour
	Today           deadline.Toll      // what expired in the last day; Expired is negative if that is not known
	RecentExpiries  []monitor.RecentExpiry
	fates           map[[2]string]string // of messages that expire, by queue: dead-letter or park; "": they are lost
	Fleet           *fleet               // nil: there are no queues
	Audited         bool
	Broker          string // the AMQP URL for clients, as far as it is known; "": there is no broker here
	Site            string // the URL of this dashboard
	Remote          bool   // RabbitMQ has the messages: nothing is known about the store, publishers and the like
}

// Monitor is what the first page needs of the monitor. *monitor.Monitor is one.
type Monitor interface {
	ui.Pending
	Health() monitor.Health
	Lateness() monitor.Lateness
	LatenessWithin(span time.Duration) monitor.Lateness
	RecentExpiries() []monitor.RecentExpiry
}

// Pages are the first page, the page of the deadlines in a span, and that of incidents.
type Pages struct {
	State      func() operate.State
	Operations *operate.Operations // nil: there is no broker
	Monitor    Monitor             // nil: deadlines are not watched
	Incidents  *incident.Incidents
	Changes    *changes.Changes
	Site       ui.Site
	History    *history.History // nil: none
	Audited    bool
	AMQP       *net.TCPAddr // where clients connect; nil: not known
	Remote     bool         // RabbitMQ has the messages
}

// Group has the pages.
func (d *Pages) Group() ui.Group {
	group := ui.Group{
		Pages: map[string]ui.Page{"/": {Title: "Overview", Tab: "/", Live: true, Build: d.build}},
		Files: map[string]ui.Handler{},
	}
	if d.History != nil {
		answer := d.History.Handler()
		group.Files[numbersPath] = func(w http.ResponseWriter, r *http.Request, _ ui.Visitor) { answer.ServeHTTP(w, r) }
	}
	if d.Operations != nil {
		group.Pages[deadlinesPath] = ui.Page{Title: "Deadlines", Tab: "/", Build: d.deadlines}
	}
	d.incidents(&group)
	return group
}

func (d *Pages) build(r *http.Request, v ui.Visitor) (ui.View, error) {
	o := &overview{State: d.State(), Watched: d.Monitor != nil, Audited: d.Audited, Today: deadline.Toll{Expired: -1}}
	seen := d.Incidents.View()
	queues, err := o.count(r.Context(), d.Operations, v, seen.Hour)
	if err != nil {
		return nil, err
	}
	o.address(r, d.AMQP)
	o.LookedAt, o.Incidents = seen.At, seen.Open
	var affected [][2]string // the worst first
	for _, i := range o.Incidents {
		for _, q := range i.Worst {
			affected = append(affected, [2]string{q.VHost, q.Queue})
		}
	}
	if d.History != nil {
		o.Today, o.Changed = d.History.ExpiredInADay(), d.History.Changes(changedFor, overviewChanges, affected)
	}
	o.Verdict = incident.VerdictOf(o.Incidents)
	for _, i := range seen.Over {
		if i.Level != incident.Info && time.Since(*i.Ended) < overFor && len(o.Over) < overviewOver {
			o.Over = append(o.Over, i)
		}
	}
	o.Remote = d.Remote
	if d.Monitor != nil {
		o.watch(d.Monitor, seen.Forecasts, seen.Queues, r.URL.Query())
		if d.Operations != nil {
			o.Timeline.Link = deadlinesURL
		}
	}
	if len(queues) > 0 {
		o.Fleet = newFleet(queues, seen, d.Operations.Rates)
	}
	o.History = NewTrends(d.History, "/", r.URL.Query(), "", "")
	return o.draw, nil
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
func (o *overview) count(ctx context.Context, of *operate.Operations, v ui.Visitor, hour deadline.Hour) ([]*operate.Queue, error) {
	if of == nil {
		return nil, nil
	}
	queues, err := of.ListQueues(ctx, v.Actor)
	o.fates = map[[2]string]string{}
	for _, q := range queues {
		if q.DeadLetters {
			o.fates[[2]string{q.VHost, q.Name}] = map[bool]string{false: "dead-letter", true: "park"}[q.ExchangeMissing]
		}
		o.Ready, o.Unacked, o.Consumers = o.Ready+q.Ready, o.Unacked+q.Unacked, o.Consumers+q.Consumers
	}
	o.Queues, o.Losses = len(queues), operate.LossesOfAll(queues, hour, of.Visible(v.Actor))
	of.Rates.Refresh()
	rates := of.Rates.Of(of.Totals(), operate.TotalKey{})
	o.Published, o.Delivered = rates["publish"], rates["deliver_get"]
	return queues, err
}

// watch adds what the monitor knows.
func (o *overview) watch(m Monitor, all []deadline.Forecast, concerns map[incident.QueueName]incident.Concern, q url.Values) {
	if o.Health = m.Health(); o.Remote { // there only keepers hold messages so long
		o.Health.Held = 0
	}
	o.Timeline = newTimeline(m, o.NowMillis, o.Health.Pending, q)
	o.Histogram = lateness(m, q)
	late := ui.NewHistogram(m.LatenessWithin(time.Hour))
	o.Late, o.Latest = late.Most, late.All
	o.RecentExpiries = m.RecentExpiries()
	o.RecentExpiries = o.RecentExpiries[:min(len(o.RecentExpiries), overviewExpiries)]
	soon, last := 0, int64(0)
	for i := range all {
		f := &all[i]
		o.AsMeant += f.AsMeant
		if f.AtRisk == 0 {
			continue
		}
		o.AtRisk, last = o.AtRisk+f.AtRisk, max(last, f.LastMiss)
		if f.NearlyDue {
			soon += f.AtRisk
		}
		_, told := concerns[incident.QueueName{VHost: f.VHost, Name: f.Queue}] // by an incident
		if f.FirstMiss > o.NowMillis && !told && (o.Next == nil || o.before(f, o.Next)) {
			o.Next = f
		}
	}
	if o.NearlyDue = soon > 0; last <= o.Timeline.End {
		o.Timeline.Agree(int64(o.AtRisk-soon), int64(soon))
	}
	o.Forecasts = all[:min(len(all), overviewForecasts)]
	o.MoreForecasts = len(all) - len(o.Forecasts)
}

// before says that the loss of a is to be told rather than that of b: what is gone for good before what is dead-lettered, then what comes first.
func (o *overview) before(a, b *deadline.Forecast) bool {
	lostA, lostB := o.fates[[2]string{a.VHost, a.Queue}] == "", o.fates[[2]string{b.VHost, b.Queue}] == ""
	return lostA && !lostB || lostA == lostB && a.FirstMiss < b.FirstMiss
}

// bannerIncidents is how many incidents the banner shows: the first bannerWhole with bannerQueues of their queues and all that is to be done, the
// others in brief, so that on a bad night all are seen at once. On a phone all are in brief.
const (
	bannerIncidents = 12
	bannerWhole     = 2
	bannerQueues    = 3
)
