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

// maxReasons is how many incidents health names.
const maxReasons = 10

// judge says how the node is. It judges nothing itself: the incidents do.
func (n *Node) judge() (h health) {
	seen := n.incidents.View()
	list, counts := seen.Open, &h.Parts.Incidents
	h.Status, h.LookedAt, h.seen = string(incident.VerdictOf(list)), seen.At, seen
	for i := range list {
		switch list[i].Level {
		case incident.Critical:
			counts.Critical++
		case incident.Warning:
			counts.Warning++
		case incident.Info:
			counts.Info++
			continue
		}
		if list[i].Ack != nil {
			counts.Acknowledged++
		}
		if len(h.Reasons) < maxReasons {
			h.Reasons = append(h.Reasons, list[i].Line())
		}
	}
	if more := counts.Critical + counts.Warning - maxReasons; more > 0 {
		h.Reasons = append(h.Reasons, fmt.Sprintf("%d more incidents: see curfew incident ls", more))
	}
	if n.unreached != nil && h.Status == string(incident.OK) {
		if why := n.unreached(); why != "" {
			h.Status, h.Reasons = string(incident.Degraded), append(h.Reasons, why)
		}
	}
	if n.monitor != nil {
		of := n.monitor.Health()
		h.Parts.Monitor = &of
		if silent(of, n.openedAt, time.Now()) { // it will not recover without a restart
			h.Status = "dead"
		}
	}
	return h
}

// silent reports whether the loop that fires has given no sign of life for so long that only a restart helps. Until the first tick the
// silence counts from since.
func silent(h monitor.Health, since, now time.Time) bool {
	if h.LastTick.After(since) {
		since = h.LastTick
	}
	return now.Sub(since) > tickLimit
}
