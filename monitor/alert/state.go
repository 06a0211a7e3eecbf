package alert

// Degraded records that the schedule is degraded and why, until Restored.
func (a *Alerts) Degraded(reason string) {
	a.begin(key{kind: ScheduleDegraded}, reason, Stats{})
}

// Restored records that the schedule is complete again. A degradation shorter than a second makes no
// notification.
func (a *Alerts) Restored() { a.end(key{kind: ScheduleDegraded}) }

// Risk is the forecast for a queue at risk.
type Risk struct {
	VHost, Queue string
	// Count messages will expire, the first and the last of them at these Unix ms.
	Count                           int64
	FirstDeadlineAt, LastDeadlineAt int64
	// Reason explains the forecast to a person; may be empty.
	Reason string
}

// AtRisk records that messages of a queue are at risk, until Safe. Another call brings the
// counts up to date for the next notification.
func (a *Alerts) AtRisk(r Risk) {
	a.begin(key{kind: AtRisk, vhost: r.VHost, queue: r.Queue}, r.Reason,
		Stats{Count: r.Count, FirstDeadlineAt: r.FirstDeadlineAt, LastDeadlineAt: r.LastDeadlineAt})
}

// Safe records that messages of the queue are no longer at risk.
func (a *Alerts) Safe(vhost, queue string) { a.end(key{kind: AtRisk, vhost: vhost, queue: queue}) }

func (a *Alerts) begin(k key, detail string, t Stats) {
	if a != nil {
		a.tracker.begin(k, detail, t)
	}
}

func (a *Alerts) end(k key) {
	if a != nil {
		a.tracker.end(k)
	}
}
