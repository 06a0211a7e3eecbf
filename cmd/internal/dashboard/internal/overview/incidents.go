package overview

import (
	"net/http"
	"slices"
	"time"

	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/changes"
	"curfew/monitor/incident"
)

// page is what the page of incidents shows.
type page struct {
	incident.Overview
	Rules error    // why the file of rules is not in force
	Form  *ui.Form // of a maintenance window, to fill in
	Now   int64
}

// lasts has the durations that the forms offer; "" is for as long as the incident lasts.
var lasts = []string{"15m", "15 minutes", "1h", "1 hour", "4h", "4 hours", "24h", "a day", "168h", "a week"}

// IncidentPages are the pages of incidents.
type IncidentPages struct {
	Incidents *incident.Incidents
	Changes   *changes.Changes
	Site      ui.Site
}

// Group has the page and its forms.
func (a IncidentPages) Group() ui.Group {
	return ui.Group{
		Pages: map[string]ui.Page{"/incidents": {Title: "Incidents", Tab: "/incidents", Live: true, Build: a.build}},
		Changes: map[string]ui.Handler{
			"/incidents/ack": a.acknowledge, "/maintenance": a.addWindow,
			"/incidents/unack": func(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
				_, err := changes.Do(r.Context(), a.Changes, v.Actor(), changes.Unacknowledge, changes.IncidentID{ID: r.PostFormValue("id")})
				a.done(w, r, "unacknowledged", err)
			},
			"/maintenance/end": func(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
				_, err := changes.Do(r.Context(), a.Changes, v.Actor(), changes.EndWindow, changes.WindowID{ID: r.PostFormValue("id")})
				a.done(w, r, "window_ended", err)
			},
		},
	}
}

func (a IncidentPages) build(r *http.Request, _ ui.Visitor) (ui.View, error) {
	return &page{a.Incidents.Overview(), a.Incidents.FileError(), ui.NewForm(r.URL.Query(), "duration", "1h"), time.Now().UnixMilli()}, nil
}

func (a IncidentPages) acknowledge(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	ask := incident.AckRequest{Comment: r.PostFormValue("comment")}
	if d := r.PostFormValue("duration"); slices.Contains(lasts, d) {
		ask.Duration = d
	}
	_, err := changes.Do(r.Context(), a.Changes, v.Actor(), changes.Acknowledge, changes.Ack{ID: r.PostFormValue("id"), AckRequest: ask})
	a.done(w, r, "acknowledged", err)
}

func (a IncidentPages) addWindow(w http.ResponseWriter, r *http.Request, v ui.Visitor) {
	_, err := changes.Do(r.Context(), a.Changes, v.Actor(), changes.AddWindow, incident.WindowRequest{Duration: r.PostFormValue("duration"), Window: incident.Window{
		Condition: r.PostFormValue("condition"), VHost: r.PostFormValue("vhost"), Queue: r.PostFormValue("queue"), Comment: r.PostFormValue("comment"),
	}})
	a.done(w, r, "window_begun", err)
}

// done answers a change.
func (a IncidentPages) done(w http.ResponseWriter, r *http.Request, what string, err error) {
	if err != nil {
		a.Site.Refuse(w, r, err)
		return
	}
	http.Redirect(w, r, ui.At("/incidents", "said", what), http.StatusSeeOther)
}
