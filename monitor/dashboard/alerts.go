package dashboard

import (
	"net/http"
	"time"

	"go.uber.org/zap"

	"curfew/monitor/alert"
)

// alertPage is what the page of alerts shows.
type alertPage struct {
	On     bool
	List   []alert.Status
	Mutes  []alert.Muting
	Sinks  []alert.SinkStatus
	Rules  error // why the file of rules is not in force
	Events []string
	Event  string // to fill in
	VHost  string
	Queue  string
	Now    int64
}

// silenceFor are how long a silence may last, as the form has it.
var silenceFor = map[string]time.Duration{"15m": 15 * time.Minute, "1h": time.Hour, "4h": 4 * time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

func (d *Dashboard) alerts(r *http.Request, _ visitor) (view, error) {
	v := r.URL.Query()
	p := &alertPage{On: d.Alerts != nil, Event: v.Get("event"), VHost: v.Get("vhost"), Queue: v.Get("queue"), Now: time.Now().UnixMilli()}
	if p.On {
		p.List, p.Mutes, p.Sinks, p.Events = d.Alerts.List(), d.Alerts.Mutings(), d.Alerts.Sinks(), alert.Events()
		p.Rules = d.Alerts.RulesError()
	}
	return p, nil
}

func (d *Dashboard) mute(w http.ResponseWriter, r *http.Request, v visitor) {
	if d.Alerts == nil {
		d.fail(w, r, http.StatusNotFound, "There are no alerts to silence: the monitor is off.")
		return
	}
	lasts, ok := silenceFor[r.PostFormValue("for")]
	if !ok {
		d.fail(w, r, http.StatusBadRequest, "Say for how long the alerts are to be silent.")
		return
	}
	m, err := d.Alerts.Mute(alert.Muting{
		Event: r.PostFormValue("event"), VHost: r.PostFormValue("vhost"), Queue: r.PostFormValue("queue"),
		Comment: r.PostFormValue("comment"), Author: v.Name, ExpiresAt: time.Now().Add(lasts),
	})
	if err != nil {
		d.fail(w, r, http.StatusBadRequest, err.Error())
		return
	}
	d.log.Info("alerts silenced", zap.String("user", v.Name), zap.String("id", m.ID))
	http.Redirect(w, r, "/alerts", http.StatusSeeOther)
}

func (d *Dashboard) unmute(w http.ResponseWriter, r *http.Request, v visitor) {
	if d.Alerts == nil {
		d.fail(w, r, http.StatusNotFound, "There are no silences: the monitor is off.")
		return
	}
	id := r.PostFormValue("id")
	if _, err := d.Alerts.Unmute(id); err != nil {
		d.fail(w, r, http.StatusInternalServerError, err.Error())
		return
	}
	d.log.Info("silence ended", zap.String("user", v.Name), zap.String("id", id))
	http.Redirect(w, r, "/alerts", http.StatusSeeOther)
}
