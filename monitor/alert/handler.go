package alert

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// Status is an alert as users see it.
type Status struct {
	Alertname   string            `json:"alertname"` // its name in Alertmanager and the runbooks
	Event       string            `json:"event"`     // its name in rules
	State       string            `json:"state"`     // pending, firing or silenced
	Severity    string            `json:"severity"`  // critical, error, warning or info
	Rule        string            `json:"rule"`      // that applies
	Summary     string            `json:"summary"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"starts_at"`
	LastAt      time.Time         `json:"last_at"` // when the event last happened
	// Finding is the summary without the queue.
	Finding string `json:"-"`
	// Links are paths of the dashboard's pages about it, by what they show: "queue", "audit", "dead_letters".
	Links map[string]string `json:"-"`
	kind  Kind
	none  bool  // it is about to be over
	count int64 // of messages
	// Runbook is the address of its page; "": the alerts file does not say where runbooks are.
	Runbook string `json:"-"`
}

// SinkStatus is the state of a sink.
type SinkStatus struct {
	Name    string   `json:"name"`
	Queued  int      `json:"queued"`            // notifications that wait
	Trouble *trouble `json:"trouble,omitempty"` // absent: it works
}

// RuleStatus is a rule as it is in force.
type RuleStatus struct {
	Name     string   `json:"name"`
	Events   []string `json:"events,omitempty"`   // absent: all
	VHost    string   `json:"vhost"`              // pattern; * matches all
	Queue    string   `json:"queue"`              // likewise
	To       []string `json:"to"`                 // names of sinks
	Severity string   `json:"severity,omitempty"` // absent: that of the event
	Count    int64    `json:"count"`              // the least number of messages that it notifies of
	Lateness string   `json:"lateness"`           // the least lateness that it notifies of
}

// Overview answers GET /alerts.
type Overview struct {
	Alerts  []Status     `json:"alerts"` // those that are not over, the most urgent first
	Sinks   []SinkStatus `json:"sinks"`
	Trouble []string     `json:"trouble"` // what keeps alerts from being sent, for an operator
}

// RuleList answers GET /alerts/rules.
type RuleList struct {
	Rules []RuleStatus `json:"rules"` // in their order; the first that matches applies
}

// TestRequest is the body of a request for a test.
type TestRequest struct {
	Sink string `json:"sink"` // empty: all
}

// TestResults answers a request for a test.
type TestResults struct {
	Sinks map[string]string `json:"sinks"` // by name: ok, or what is wrong
}

// SilenceList answers GET /silences.
type SilenceList struct {
	Silences []Silence `json:"silences"`
}

// SilenceRequest is the body of a request for a silence. It has a duration or an expires_at; id and created_at are not read.
type SilenceRequest struct {
	Silence
	Duration string `json:"duration"` // how long it lasts, such as 30m or 8h
}

// List returns the alerts that are not over, the most urgent first (byUrgency).
func (a *Alerts) List() []Status {
	a.refreshHolders(time.Now())
	list := a.tracker.list(time.Now())
	a.mu.Lock()
	from := a.source
	a.mu.Unlock()
	for i := range list {
		list[i].Runbook = from.runbook(list[i].kind)
	}
	slices.SortFunc(list, byUrgency)
	return list
}

// Sinks returns the state of each sink, the log included.
func (a *Alerts) Sinks() []SinkStatus {
	list := []SinkStatus{{Name: logName}}
	for _, c := range a.delivery.sinks() {
		list = append(list, SinkStatus{c.name(), c.queued(), c.trouble()})
	}
	return list
}

// Rules returns the rules in force, in their order. The last is for events that no other matches.
func (a *Alerts) Rules() []RuleStatus {
	var list []RuleStatus
	for _, r := range a.tracker.inForce() {
		s := RuleStatus{
			Name: r.name, VHost: r.vhost.String(), Queue: r.queue.String(), To: append([]string{}, r.to...), Severity: r.severity,
			Count: r.count, Lateness: r.lateness.String(),
		}
		for _, k := range r.kinds {
			s.Events = append(s.Events, kinds[k].event)
		}
		if r.everywhere {
			s.To = a.delivery.names()
		} else if !slices.Contains(s.To, logName) {
			s.To = append(s.To, logName)
		}
		list = append(list, s)
	}
	return list
}

// Handler serves the state of alerts, below the path it is mounted at:
//
//	GET /alerts          Overview
//	GET /alerts/rules    RuleList
//	GET /silences        SilenceList
//
// It does not ask for credentials: whoever mounts it does.
func (a *Alerts) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /alerts", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, Overview{a.List(), a.Sinks(), append([]string{}, a.Health()...)})
	})
	mux.HandleFunc("GET /alerts/rules", func(w http.ResponseWriter, _ *http.Request) { respond(w, RuleList{a.Rules()}) })
	mux.HandleFunc("GET /silences", func(w http.ResponseWriter, _ *http.Request) { respond(w, SilenceList{a.Silences()}) })
	return mux
}

func respond(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(body) // a client that is gone needs no answer
}
