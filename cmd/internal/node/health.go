package node

import (
	"fmt"
	"time"

	"curfew/monitor"
	"curfew/monitor/incident"
)

// tickLimit is how long the monitor's loop may go without a tick before only a restart helps. It ticks
// at least once a second.
const tickLimit = 20 * time.Second

// openIncidents counts the incidents that are not over, by level, and those that somebody has acknowledged.
type openIncidents struct {
	Critical     int `json:"critical"`
	Warning      int `json:"warning"`
	Info         int `json:"info"`
	Acknowledged int `json:"acknowledged"`
}

// judged is the verdict on the node, and what it rests on.
type judged struct {
	verdict   incident.Verdict
	dead      bool // it will not recover without a restart
	reasons   []string
	incidents openIncidents
	monitor   *monitor.Health // nil: there is no monitor
}

// maxReasons is how many incidents health names.
const maxReasons = 10

// judge says how the node is. It judges nothing itself: the incidents do.
func (n *Node) judge() (j judged) {
	list := n.incidents.List()
	j.verdict = incident.VerdictOf(list)
	for i := range list {
		switch list[i].Level {
		case incident.Critical:
			j.incidents.Critical++
		case incident.Warning:
			j.incidents.Warning++
		case incident.Info:
			j.incidents.Info++
			continue
		}
		if list[i].Ack != nil {
			j.incidents.Acknowledged++
		}
		if len(j.reasons) < maxReasons {
			j.reasons = append(j.reasons, list[i].Summary)
		}
	}
	if more := j.incidents.Critical + j.incidents.Warning - maxReasons; more > 0 {
		j.reasons = append(j.reasons, fmt.Sprintf("%d more incidents: see curfew incident ls", more))
	}
	if n.monitor != nil {
		h := n.monitor.Health()
		j.monitor, j.dead = &h, silent(h, n.openedAt, time.Now())
	}
	return j
}

// silent reports whether the loop that fires has given no sign of life for so long that only a restart helps. Until the first tick the
// silence counts from since.
func silent(h monitor.Health, since, now time.Time) bool {
	if h.LastTick.After(since) {
		since = h.LastTick
	}
	return now.Sub(since) > tickLimit
}
