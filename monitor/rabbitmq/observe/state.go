package observe

import (
	"maps"
	"slices"

	"curfew/monitor/rabbitmq/cluster"
)

// State is what is known of one watched queue.
type State struct {
	VHost     string `json:"vhost"`
	Queue     string `json:"queue"`
	Tapped    bool   `json:"tapped"`
	Reason    string `json:"reason,omitempty"` // why it is not tapped
	Ready     int    `json:"ready"`
	Consumers int    `json:"consumers"`
	Counts
	// Seen has the times to live of the messages that taps have seen since the Observer began.
	Seen         cluster.TTLStats `json:"seen"`
	Overdue      int              `json:"overdue"`       // missed their deadlines and still wait
	OverdueSince int64            `json:"overdue_since"` // the earliest of these deadlines, Unix ms; 0: none
	// Restarts is how often counting started over: a connection was lost, the tap overflowed,
	// the bindings changed.
	Restarts int `json:"restarts"`
}

// States returns the states of the watched queues, by name.
func (o *Observer) States() []State {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []State
	for _, name := range slices.Sorted(maps.Keys(o.queues)) {
		list = append(list, o.stateLocked(o.queues[name]))
	}
	return list
}

func (o *Observer) stateLocked(w *watched) State {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := State{VHost: o.o.VHost, Queue: w.name, Tapped: w.line != nil, Reason: w.reason, Ready: w.ready, Consumers: w.consumers, Seen: w.seen, Restarts: w.restarts}
	if w.line != nil {
		s.Counts = w.line.Counts()
		overdue, since := w.line.Overdue()
		s.Overdue, s.OverdueSince = overdue, since.UnixMilli()
	}
	return s
}
