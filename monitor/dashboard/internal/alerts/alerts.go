package alerts

import (
	"net/http"
	"time"

	"curfew/monitor/alert"
	"curfew/monitor/changes"
	"curfew/monitor/dashboard/internal/ui"
)

// page is what the page of alerts shows.
type page struct {
	On       bool
	Subjects []subject     // the most urgent alert first
	Urgent   *alert.Status // the most urgent one, of several; nil: there is no choice, or all are silenced
	Silences []alert.Silence
	Sinks    []alert.SinkStatus
	Rules    error // why the file of rules is not in force
	Events   []string
	Form     *ui.Form // of a silence, to fill in
	Now      int64
}

// subject is a queue with alerts of it that follow one another in the list; without a name it is Curfew itself.
type subject struct {
	VHost, Queue string
	Alerts       []alert.Status
}

// bySubject puts what follows one another about the same queue under one heading. The order stays that of the list, the most urgent first.
func bySubject(list []alert.Status) (subjects []subject) {
	for _, a := range list {
		vhost, queue := a.Labels["vhost"], a.Labels["queue"]
		if n := len(subjects); n == 0 || subjects[n-1].VHost != vhost || subjects[n-1].Queue != queue {
			subjects = append(subjects, subject{VHost: vhost, Queue: queue})
		}
		last := &subjects[len(subjects)-1]
		last.Alerts = append(last.Alerts, a)
	}
	return subjects
}

// silenced is a state of alerts.
const silenced = "silenced"

// silenceFor has the durations that the form offers.
var silenceFor = map[string]time.Duration{"15m": 15 * time.Minute, "1h": time.Hour, "4h": 4 * time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

// Pages of alerts.
type Pages struct {
	Alerts  *alert.Alerts // nil: none, since the monitor is off
	Changes *changes.Changes
	Site    ui.Site
}

// Group has the page and its forms.
func (a Pages) Group() ui.Group {
	return ui.Group{
		Pages:   map[string]ui.Page{"/alerts": {Title: "Alerts", Tab: "/alerts", Live: true, Build: a.build}},
		Changes: map[string]ui.Handler{"/silences": a.silence, "/silences/end": a.endSilence},
	}
}

func (a Pages) build(r *http.Request, _ ui.Visitor) (ui.View, error) {
	p := &page{On: a.Alerts != nil, Form: ui.NewForm(r.URL.Query(), "for", "1h"), Now: time.Now().UnixMilli()}
	if p.On {
		list := a.Alerts.List()
		if len(list) > 1 && list[0].State != silenced {
			p.Urgent = &list[0]
		}
		p.Subjects = bySubject(list)
		p.Silences, p.Sinks, p.Events = a.Alerts.Silences(), a.Alerts.Sinks(), alert.Events()
		p.Rules = a.Alerts.FileError()
	}
	return p, nil
}

func (a Pages) silence(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	one := alert.Silence{
		Event: r.PostFormValue("event"), VHost: r.PostFormValue("vhost"), Queue: r.PostFormValue("queue"), Comment: r.PostFormValue("comment"),
	}
	if lasts, ok := silenceFor[r.PostFormValue("for")]; ok {
		one.ExpiresAt = time.Now().Add(lasts)
	}
	_, err := a.Changes.AddSilence(v.Actor(), one)
	a.done(w, r, err)
}

func (a Pages) endSilence(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	a.done(w, r, a.Changes.EndSilence(v.Actor(), r.PostFormValue("id")))
}

// done answers a change.
func (a Pages) done(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		a.Site.Refuse(w, r, err)
		return
	}
	http.Redirect(w, r, "/alerts", http.StatusSeeOther)
}
