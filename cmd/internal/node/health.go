package node

import (
	"fmt"
	"time"

	"curfew/broker"
	"curfew/monitor"
)

// tickLimit is how long the monitor's loop may go without a tick before only a restart helps. It ticks
// at least once a second.
const tickLimit = 20 * time.Second

// storeHealth reports a full disk or memory, which stops publishes and changes of definitions and nothing else.
func (n *Node) storeHealth() (r healthReport) {
	if reason, _ := n.broker.BlockedReason(); reason != "" {
		r.Reasons = append(r.Reasons, "publishers are blocked, "+reason+": make room or consume messages")
	}
	if silent := n.broker.DiskSilent(); silent > 0 {
		r.Reasons = append(r.Reasons, fmt.Sprintf("the disk has not answered for %s: confirms of persistent messages wait for it, deliveries and deadlines go on; "+
			"check the volume and the machine's log", silent.Round(time.Second)))
	}
	if n.monitor != nil {
		if lost := n.monitor.Health().Orphans; lost > 0 {
			r.Reasons = append(r.Reasons, fmt.Sprintf("the data folder was new at this start, and Redis had %d deadline(s) of this instance: their messages are not here. "+
				"If they should be, stop Curfew, mount the volume or correct CURFEW_DATA_DIR, and start it again; if not, this ends with the next start", lost))
		}
	}
	if err := n.broker.Unsaved(); err != nil {
		r.Reasons = append(r.Reasons, fmt.Sprintf("definitions cannot be saved: queues, users and the like cannot be created or changed, and deleted ones would be back after a restart: make room (%s)", err))
	}
	if lost := n.broker.Adopted(); lost > 0 {
		r.Reasons = append(r.Reasons, fmt.Sprintf("messages without the definition of their queue were put into %d queue(s) %s*: move them, then delete these queues", lost, broker.RecoveredPrefix))
	}
	return r
}

// clockLimit is how far the clock of deadlines may be from the wall clock before health reports it. A leap
// second and the steps of a working time service are below it.
const clockLimit = 5 * time.Second

// clockHealth reports a wrong clock. Times to live are right whatever the wall clock says, but an absolute
// time that was given while it was wrong stays wrong.
func clockHealth(ahead time.Duration) healthReport {
	if ahead.Abs() <= clockLimit {
		return healthReport{}
	}
	where := "ahead of"
	if ahead < 0 {
		where = "behind"
	}
	return healthReport{Reasons: []string{fmt.Sprintf("the clock of deadlines is %s %s the machine's, which was set or was wrong at a start: times to live are kept, "+
		"but absolute times (x-expires-at, x-scheduled-enqueue-time) given while it was wrong are off; check the machine's time service. "+
		"The next start with no deadline pending goes by the machine's clock", ahead.Abs().Round(time.Millisecond), where)}}
}

// connectionHealth reports for a while that AMQP connections were refused because there were too many.
func (n *Node) connectionHealth() healthReport {
	most, last := n.server.Full()
	if last.IsZero() || time.Since(last) > refusedRecently {
		return healthReport{}
	}
	r := refusedHealth(most)
	r.Reasons[0] = "AMQP " + r.Reasons[0] + ", or CURFEW_MAX_CONNECTIONS if that is lower"
	return r
}

// monitorHealth adds to the monitor's own report whether its loop still ticks. since is when it was
// started: until the first tick the silence counts from there.
func monitorHealth(h monitor.Health, since, now time.Time) healthReport {
	r := healthReport{Reasons: h.Reasons, Detail: h}
	if h.LastTick.After(since) {
		since = h.LastTick
	}
	if silent := now.Sub(since); silent > tickLimit {
		r.Dead = true
		r.Reasons = append(r.Reasons, fmt.Sprintf("the loop that fires deadlines has been silent for %s", silent.Round(time.Second)))
	}
	return r
}
