package alert

import "time"

// key identifies an incident.
type key struct {
	kind                 Kind
	vhost, queue, action string
}

// otherQueues stands for all queues that found no room among the incidents.
const otherQueues = "_other"

// incident is what has happened to one queue, or a state that lasts, since it began.
type incident struct {
	key
	Stats           // since it began; of a state, at present
	lasts    bool   // a state that has not ended
	state    bool   // it ends when that is recorded, not when nothing happens
	detail   string // of a state, in words
	held     *held  // who holds the messages; nil: not known
	startsAt time.Time
	lastAt   time.Time // the last event

	group         *group
	notified      bool  // a notification said that it fires, so one must say that it is over
	notifiedCount int64 // the count in that notification
	again         bool  // a message is held for longer than heldAgain
	silenced      bool  // a silence suppresses its notification
}

// over reports whether the incident has ended by now.
func (i *incident) over(r *rule, now time.Time) bool {
	if i.state {
		return !i.lasts
	}
	return now.Sub(i.lastAt) >= r.quiet(i.kind)
}

// reached reports whether it is bad enough for a notification.
func (i *incident) reached(r *rule) bool {
	if i.state && i.Count == 0 {
		return true
	}
	if i.held != nil && i.held.count == 0 && !i.again { // all have come back
		return false
	}
	return i.count() >= r.count && (r.lateness == 0 || lateness(i.WorstMillis) >= r.lateness)
}

// growth is the factor by which an incident must have grown for another notification before
// the repeat interval is over: a storm of a million makes seven notifications at most.
const growth = 10

// news reports whether the last notification is out of date.
func (i *incident) news() bool {
	return !i.notified || !i.state && i.count() >= growth*max(i.notifiedCount, 1)
}

// alert returns i as it goes into a notification.
func (i *incident) alert(severity string) alert {
	a := alert{key: i.key, Stats: i.Stats, detail: i.detail, severity: severity, startsAt: i.startsAt, fresh: i.news()}
	if i.held != nil {
		a.Count, a.detail, a.WorstMillis = i.held.count, i.held.holders, max(a.WorstMillis, i.held.worst)
	}
	return a
}

// count is how many messages it is about: those held now, if that is known, else all since it began.
func (i *incident) count() int64 {
	if i.held != nil && i.held.count > 0 {
		return i.held.count
	}
	return i.Count
}
