package dashboard

import (
	"net/http"
	"time"

	"go.uber.org/zap"

	"curfew/broker/operate"
	"curfew/monitor/alert"
)

// alertPage is what the page of alerts shows.
type alertPage struct {
	On       bool
	List     []alert.Status
	Silences []alert.Silence
	Sinks    []alert.SinkStatus
	Rules    error // why the file of rules is not in force
	Events   []string
	Event    string // to fill in
	VHost    string
	Queue    string
	Now      int64
}

// silenceFor has the durations that the form offers.
var silenceFor = map[string]time.Duration{"15m": 15 * time.Minute, "1h": time.Hour, "4h": 4 * time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

func (d *Dashboard) alerts(r *http.Request, _ visitor) (view, error) {
	v := r.URL.Query()
	p := &alertPage{On: d.Alerts != nil, Event: v.Get("event"), VHost: v.Get("vhost"), Queue: v.Get("queue"), Now: time.Now().UnixMilli()}
	if p.On {
		p.List, p.Silences, p.Sinks, p.Events = d.Alerts.List(), d.Alerts.Silences(), d.Alerts.Sinks(), alert.Events()
		p.Rules = d.Alerts.FileError()
	}
	return p, nil
}

func (d *Dashboard) silence(w http.ResponseWriter, r *http.Request, v visitor) {
	if d.Alerts == nil {
		d.fail(w, r, http.StatusNotFound, "There are no alerts to silence: the monitor is off.")
		return
	}
	lasts, ok := silenceFor[r.PostFormValue("for")]
	if !ok {
		d.fail(w, r, http.StatusBadRequest, "Choose how long the silence lasts.")
		return
	}
	m, err := d.Alerts.AddSilence(alert.Silence{
		Event: r.PostFormValue("event"), VHost: r.PostFormValue("vhost"), Queue: r.PostFormValue("queue"),
		Comment: r.PostFormValue("comment"), Author: v.Name, ExpiresAt: time.Now().Add(lasts),
	})
	if err != nil {
		d.fail(w, r, http.StatusBadRequest, err.Error())
		return
	}
	record(d, v, zap.String("silence", m.ID))
	http.Redirect(w, r, "/alerts", http.StatusSeeOther)
}

// record notes that a user changed alerts.
func record(d *Dashboard, v visitor, more ...zap.Field) {
	if d.Operations != nil { // without a broker there is no record of operations
		d.Operations.Record(v.actor(), operate.ChangeAlerts, operate.QueueName{}, nil, more...)
	} else {
		d.log.Info("alerts changed", append(more, zap.String("user", v.Name))...)
	}
}

func (d *Dashboard) endSilence(w http.ResponseWriter, r *http.Request, v visitor) {
	if d.Alerts == nil {
		d.fail(w, r, http.StatusNotFound, "There are no silences: the monitor is off.")
		return
	}
	id := r.PostFormValue("id")
	if _, err := d.Alerts.EndSilence(id); err != nil {
		d.fail(w, r, http.StatusInternalServerError, err.Error())
		return
	}
	record(d, v, zap.String("silence_ended", id))
	http.Redirect(w, r, "/alerts", http.StatusSeeOther)
}
