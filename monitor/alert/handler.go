package alert

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Status is an alert as it is shown.
type Status struct {
	Alertname   string            `json:"alertname"`
	Event       string            `json:"event"`
	State       string            `json:"state"` // pending, firing or silenced
	Severity    string            `json:"severity"`
	Rule        string            `json:"rule"`
	Summary     string            `json:"summary"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"starts_at"`
	LastAt      time.Time         `json:"last_at"`
}

// SinkStatus is how a sink does.
type SinkStatus struct {
	Name    string   `json:"name"`
	Queued  int      `json:"queued"`
	Trouble *trouble `json:"trouble,omitempty"`
}

// RuleStatus is a rule as it is in force.
type RuleStatus struct {
	Name     string   `json:"name"`
	Events   []string `json:"events,omitempty"` // none: all
	VHost    string   `json:"vhost"`
	Queue    string   `json:"queue"`
	To       []string `json:"to"`
	Severity string   `json:"severity,omitempty"` // none: that of the event
	Group    string   `json:"group"`
	Count    int64    `json:"count"`
	Lateness string   `json:"lateness"`
	Wait     string   `json:"wait"`
	Interval string   `json:"interval"`
	Repeat   string   `json:"repeat"`
}

// List shows what is going on, the worst severity first.
func (a *Alerts) List() []Status {
	now := time.Now()
	list := []Status{}
	a.mu.Lock()
	for _, i := range a.incidents {
		if !i.over(i.group.rule, now) {
			list = append(list, a.status(i, now))
		}
	}
	a.mu.Unlock()
	rank := func(s Status) int { return slices.Index(severities, s.Severity) }
	slices.SortFunc(list, func(a, b Status) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.StartsAt.Compare(b.StartsAt), cmp.Compare(a.Summary, b.Summary))
	})
	return list
}

// status is i as it is shown. Callers hold mu.
func (a *Alerts) status(i *incident, now time.Time) Status {
	r := i.group.rule
	told := i.alert(r.severityOf(i.kind))
	s := Status{
		Alertname: i.kind.String(), Event: kinds[i.kind].event, State: "pending", Severity: told.severity, Rule: r.name,
		Summary: told.summary(), Labels: told.labels(), Annotations: told.annotations(),
		StartsAt: i.startsAt.UTC(), LastAt: i.lastAt.UTC(),
	}
	switch {
	case a.silences.cover(i.key, now):
		s.State = "silenced"
	case i.told:
		s.State = "firing"
	}
	return s
}

// Sinks shows the sinks that are configured.
func (a *Alerts) Sinks() []SinkStatus {
	list := []SinkStatus{{Name: "log"}}
	for _, c := range a.channels {
		list = append(list, SinkStatus{c.name(), c.queued(), c.trouble()})
	}
	return list
}

// Rules shows the rules in force, in their order; the last takes what the others do
// not.
func (a *Alerts) Rules() []RuleStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []RuleStatus
	for _, r := range append(slices.Clone(a.rules), a.rest) {
		s := RuleStatus{
			Name: r.name, VHost: r.vhost.String(), Queue: r.queue.String(), To: append([]string{}, r.to...), Severity: r.severity, Group: groupings[r.group],
			Count: r.count, Lateness: r.lateness.String(), Wait: r.wait.String(), Interval: r.interval.String(), Repeat: r.repeat.String(),
		}
		for _, k := range r.kinds {
			s.Events = append(s.Events, kinds[k].event)
		}
		if r.everywhere {
			s.To = a.sinks
		} else if !slices.Contains(s.To, "log") {
			s.To = append(s.To, "log")
		}
		list = append(list, s)
	}
	return list
}

// maxRequest bounds a request's body, in bytes.
const maxRequest = 64 << 10

// Handler serves, below the path it is mounted at:
//
//	GET    /alerts          {"alerts": [Status], "sinks": [SinkStatus]}
//	GET    /alerts/rules    {"rules": [RuleStatus]}
//	POST   /alerts/test     tries the sinks; {"sink": "slack"} or nothing for all
//	GET    /silences        {"silences": [Muting]}
//	POST   /silences        Muting, with "duration" or expires_at; 201 and what was made
//	DELETE /silences/{id}   204, 404
//
// Errors are {"error", "reason"}, as those of RabbitMQ's API. Whoever mounts it asks for
// credentials.
func (a *Alerts) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /alerts", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, map[string]any{"alerts": a.List(), "sinks": a.Sinks(), "trouble": append([]string{}, a.Health()...)})
	})
	mux.HandleFunc("GET /alerts/rules", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, map[string]any{"rules": a.Rules()})
	})
	mux.HandleFunc("POST /alerts/test", a.serveTest)
	mux.HandleFunc("GET /silences", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, map[string]any{"silences": a.Mutings()})
	})
	mux.HandleFunc("POST /silences", a.serveMute)
	mux.HandleFunc("DELETE /silences/{id}", a.serveUnmute)
	return mux
}

func (a *Alerts) serveTest(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Sink string `json:"sink"`
	}
	if r.ContentLength != 0 && !decode(w, r, &request) {
		return
	}
	tried, err := a.Try(r.Context(), request.Sink)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	results := make(map[string]string)
	for _, t := range tried {
		results[t.Sink] = "ok"
		if t.Err != nil {
			results[t.Sink] = t.Err.Error()
		}
	}
	respond(w, http.StatusOK, map[string]any{"sinks": results})
}

func (a *Alerts) serveMute(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Muting
		Duration string `json:"duration"`
	}
	if !decode(w, r, &request) {
		return
	}
	if request.Duration != "" {
		d, err := time.ParseDuration(request.Duration)
		if err != nil {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("duration: %q is none; it takes one such as 30m or 8h", request.Duration))
			return
		}
		request.ExpiresAt = time.Now().Add(d)
	}
	made, err := a.Mute(request.Muting)
	switch {
	case err == nil:
		respond(w, http.StatusCreated, made)
	case strings.HasPrefix(err.Error(), "alert: "): // it could not be saved
		refuse(w, http.StatusInternalServerError, err.Error())
	default:
		refuse(w, http.StatusBadRequest, err.Error())
	}
}

func (a *Alerts) serveUnmute(w http.ResponseWriter, r *http.Request) {
	found, err := a.Unmute(r.PathValue("id"))
	switch {
	case err != nil:
		refuse(w, http.StatusInternalServerError, err.Error())
	case !found:
		refuse(w, http.StatusNotFound, "there is no such silence")
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
	body.DisallowUnknownFields()
	err := body.Decode(into)
	if err == nil {
		return true
	}
	code := http.StatusBadRequest
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		code = http.StatusRequestEntityTooLarge
	}
	refuse(w, code, err.Error())
	return false
}

func refuse(w http.ResponseWriter, code int, reason string) {
	respond(w, code, map[string]string{"error": strings.ReplaceAll(strings.ToLower(http.StatusText(code)), " ", "_"), "reason": reason})
}

func respond(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a peer that is gone needs no answer
}
