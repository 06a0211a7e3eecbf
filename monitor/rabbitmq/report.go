package rabbitmq

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/lease"
)

// reportEvery is how often the report to the others is made again.
const reportEvery = 2 * time.Second

// mostReported bounds the queues in one report, with about 300 bytes each. Kept queues come first.
const mostReported = 1000

// report is what an instance reports to the others with each beat: the state of the queues that it keeps or observes, as it
// shows them itself.
type report struct {
	Name   string  `json:"-"` // of the Curfew
	Queues []Queue `json:"queues"`
}

// report returns the report of this Curfew; empty if nobody would read it.
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
	var kept, others []Queue
	p.mu.Lock()
	for _, row := range p.rowsLocked() {
		row.Mind, row.VHost = nil, ""
		if row.Here {
			kept = append(kept, row)
		} else if row.Observed != nil || row.Seen != nil {
			others = append(others, row)
		}
	}
	p.mu.Unlock()
	all := slices.Concat(kept, others)
	text, err := json.Marshal(report{Queues: all[:min(len(all), mostReported)]})
	if err != nil {
		p.log.Error("cannot report the queues of this Curfew to the others", zap.Error(err))
		return ""
	}
	return string(text)
}

// readReports reads the reports of others. It leaves out what this version does not understand.
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

// noteSeenLocked notes of which queues others report that they hold all messages.
func (g *group) noteSeenLocked() {
	at := time.Now().Add(-reportEvery - beatEvery)
	maps.DeleteFunc(g.seenUntil, func(_ string, last time.Time) bool { return at.Sub(last) > time.Hour })
	for _, r := range g.reports {
		for i := range r.Queues {
			if q := &r.Queues[i]; q.Here && q.CaughtUp {
				g.seenUntil[q.Queue] = at
			}
		}
	}
}

// seenBy returns until when another Curfew surely held all messages of the queue; zero: it is not known.
func (g *group) seenBy(queue string) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seenUntil[queue]
}

// seenElsewhere returns what other Curfews have seen of messages, by queue.
func (g *group) seenElsewhere() map[string]cluster.TTLStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[string]cluster.TTLStats{}
	for _, r := range g.reports {
		for i := range r.Queues {
			if q := &r.Queues[i]; q.Seen != nil {
				all[q.Queue] = all[q.Queue].Plus(*q.Seen)
			}
		}
	}
	return all
}

// complete adds what others report about the queues that they keep or observe.
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

// complete adds what the Curfew of that name reports about the queue.
func (q *Queue) complete(name string, reported *Queue) {
	if q.Observed == nil && reported.Observed != nil {
		q.Observed = reported.Observed
		q.Reason = cmp.Or(q.Reason, reported.Reason)
	}
	if !reported.Here || q.Here || !q.running {
		return
	}
	own := *q
	*q = *reported
	q.VHost, q.Type, q.Mode, q.Mind, q.Seen, q.Observed, q.running = own.VHost, own.Type, own.Mode, own.Mind, own.Seen, own.Observed, own.running
	q.Keeper, q.Here, q.Reported = name, false, true
}
