package rabbitmq

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"go.uber.org/zap"

	"curfew/monitor/rabbitmq/lease"
	"curfew/monitor/rabbitmq/queuefacts"
)

// reportEvery is how often what the others are told is made again.
const reportEvery = 2 * time.Second

// mostReported bounds the queues in one report, of about 300 bytes each. Those kept come first.
const mostReported = 1000

// report is what a Curfew tells the others with each beat: the state of the queues that it keeps or observes, as it shows
// them itself.
type report struct {
	Name   string  `json:"-"` // of the Curfew
	Queues []Queue `json:"queues"`
}

// report is that of this Curfew; empty if there is nobody to read it.
func (p *Primary) report() string {
	if len(p.group.names()) < 2 {
		return ""
	}
	p.reporting.Lock()
	defer p.reporting.Unlock()
	if time.Since(p.reportedAt) >= reportEvery {
		p.reported, p.reportedAt = p.makeReport(), time.Now()
	}
	return p.reported
}

func (p *Primary) makeReport() string {
	var r report
	p.mu.Lock()
	for _, row := range p.rowsLocked() {
		if row.Here || row.Observed != nil || row.Seen != nil {
			row.Mind, row.VHost = nil, ""
			r.Queues = append(r.Queues, row)
		}
	}
	p.mu.Unlock()
	slices.SortStableFunc(r.Queues, func(a, b Queue) int { return cmp.Compare(b.rank(), a.rank()) })
	r.Queues = r.Queues[:min(len(r.Queues), mostReported)]
	text, err := json.Marshal(r)
	if err != nil {
		p.log.Error("the others are told nothing of the queues here", zap.Error(err))
		return ""
	}
	return string(text)
}

func (q *Queue) rank() int {
	if q.Here {
		return 1
	}
	return 0
}

// readReports reads what others tell. What this version does not understand it leaves out.
func readReports(from []lease.Report) (list []report) {
	for _, one := range from {
		var r report
		if one.Text != "" && json.Unmarshal([]byte(one.Text), &r) == nil {
			r.Name = one.Name
			list = append(list, r)
		}
	}
	return list
}

// seenElsewhere is what others have seen of messages, by queue.
func (g *group) seenElsewhere() map[string]queuefacts.TTLStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[string]queuefacts.TTLStats{}
	for _, r := range g.reports {
		for i := range r.Queues {
			if q := &r.Queues[i]; q.Seen != nil {
				all[q.Queue] = all[q.Queue].Plus(*q.Seen)
			}
		}
	}
	return all
}

// complete adds what others tell of the queues that they keep or observe.
func (g *group) complete(rows []Queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := make(map[string]*Queue, len(rows))
	for i := range rows {
		at[rows[i].Queue] = &rows[i]
	}
	for _, r := range g.reports {
		for i := range r.Queues {
			if row := at[r.Queues[i].Queue]; row != nil {
				row.complete(r.Name, &r.Queues[i])
			}
		}
	}
}

// complete adds what the Curfew of a name tells of the queue.
func (q *Queue) complete(name string, told *Queue) {
	if q.Observed == nil && told.Observed != nil {
		q.Observed = told.Observed
		if q.Reason == "" {
			q.Reason = told.Reason
		}
	}
	if !told.Here || q.Here || !q.running {
		return
	}
	q.State, q.Reason, q.Instead, q.Code, q.NeedsOperator = told.State, told.Reason, told.Instead, told.Code, told.NeedsOperator
	q.Keeper, q.Reported = name, true
	q.Held, q.HeldBytes, q.NextDue, q.Expired = told.Held, told.HeldBytes, told.NextDue, told.Expired
	q.P50, q.P99, q.UnknownAge, q.Stranded, q.LastRelease = told.P50, told.P99, told.UnknownAge, told.Stranded, told.LastRelease
}
