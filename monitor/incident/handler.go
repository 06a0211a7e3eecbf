package incident

import (
	"fmt"
	"slices"
	"time"
)

// SinkStatus is the state of a sink.
type SinkStatus struct {
	Name    string   `json:"name"`
	Queued  int      `json:"queued"`            // notifications that wait
	Trouble *trouble `json:"trouble,omitempty"` // absent: it works
}

// Overview answers GET /incidents.
type Overview struct {
	LookedAt  time.Time    `json:"looked_at"` // all is as it was then
	Verdict   Verdict      `json:"verdict"`
	Incidents []Incident   `json:"incidents"` // those that are not over, the worst first
	Over      []Incident   `json:"over"`      // the last that are, the newest first
	Windows   []Window     `json:"maintenance"`
	Sinks     []SinkStatus `json:"sinks"`
}

// ConditionStatus is an entry of the table of conditions.
type ConditionStatus struct {
	Name      string `json:"name"`
	Alertname string `json:"alertname"`
	Level     Level  `json:"level"`
	What      string `json:"what"`
	Whom      string `json:"whom"` // it affects
	Do        string `json:"do"`
	Begins    string `json:"begins"` // how long it lasts before it is an incident
	Ends      string `json:"ends"`   // how long it must be gone for that to be over
}

// RuleList answers GET /incidents/rules.
type RuleList struct {
	Rules      []Rule            `json:"rules"` // in their order; the first that matches applies
	Conditions []ConditionStatus `json:"conditions"`
}

// AckRequest is the body of an acknowledgement; all of it may be left out.
type AckRequest struct {
	Duration string `json:"duration" is:"duration" flag:"for" doc:"how long it lasts, such as 8h; none: until the incident is over"`
	Comment  string `json:"comment" doc:"what is done about it"`
}

// TestRequest is the body of a request for a test.
type TestRequest struct {
	Sink string `json:"sink" doc:"empty: all"`
}

// TestResults answers a request for a test.
type TestResults struct {
	Sinks map[string]string `json:"sinks"` // by name: ok, or what is wrong
}

// WindowList answers GET /maintenance.
type WindowList struct {
	Windows []Window `json:"maintenance"`
}

// WindowRequest is the body of a request for a maintenance window. It has a duration or an until; id is not read.
type WindowRequest struct {
	Window
	Duration string `json:"duration" is:"duration" doc:"how long it lasts, such as 30m or 8h"`
}

// Overview is what GET /incidents answers.
func (a *Incidents) Overview() Overview {
	v := a.View()
	return Overview{v.At, VerdictOf(v.Open), append([]Incident{}, v.Open...), append([]Incident{}, v.Over...), a.Windows(), a.Sinks()}
}

// Sinks returns the state of each sink, the log included.
func (a *Incidents) Sinks() []SinkStatus {
	list := []SinkStatus{{Name: logName}}
	for _, c := range a.delivery.sinks() {
		list = append(list, c.status())
	}
	return list
}

// Rules returns the rules in force, in their order, and the conditions. The last rule is for incidents that no other matches.
func (a *Incidents) Rules() RuleList {
	var list RuleList
	for _, r := range a.tracker.view.Load().rules {
		s := r.Rule
		s.Lateness = r.lateness.String()
		if r.To == nil {
			s.To = a.delivery.names()
		} else if !slices.Contains(s.To, logName) {
			s.To = append(slices.Clone(s.To), logName)
		}
		list.Rules = append(list.Rules, s)
	}
	for _, c := range Conditions {
		list.Conditions = append(list.Conditions, ConditionStatus{c.Name, c.Alertname(), c.Level, c.What, c.Whom, c.Do, c.Begins.String(), c.Ends.String()})
	}
	return list
}

// AckOf is the acknowledgement that a request asks for. Its error says that the duration is none.
func (r AckRequest) AckOf(by string) (Ack, error) {
	ack := Ack{By: by, Comment: r.Comment}
	if r.Duration == "" {
		return ack, nil
	}
	until, err := after(time.Now(), r.Duration)
	ack.Until = &until
	return ack, err
}

// WindowOf is the window that a request asks for. Its error says that the duration is none.
func (r *WindowRequest) WindowOf() (w Window, err error) {
	w = r.Window
	if r.Duration != "" {
		if w.From.IsZero() {
			w.From = time.Now()
		}
		w.Until, err = after(w.From, r.Duration)
	}
	return w, err
}

func after(at time.Time, duration string) (time.Time, error) {
	d, err := time.ParseDuration(duration)
	if err != nil {
		err = fmt.Errorf("duration: %q is invalid: want a duration such as 30m or 8h", duration)
	}
	return at.Add(d).UTC(), err
}
