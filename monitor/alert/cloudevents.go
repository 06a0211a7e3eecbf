package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// cloudEvents posts each notification as one event (CloudEvents 1.0: HTTP Protocol
// Binding).
type cloudEvents struct {
	*poster
	source source
	binary bool
}

// cloudEvent is an event in the JSON format. Its extensions are of the documented ones:
// severity (CloudEvents: Severity).
type cloudEvent struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject,omitempty"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	SeverityText    string    `json:"severitytext"`
	SeverityNumber  int       `json:"severitynumber"`
	Data            eventData `json:"data"`
}

// eventData is an alert, or a group of them, as plain JSON.
type eventData struct {
	Event       string            `json:"event"`
	Alertname   string            `json:"alertname"`
	Status      string            `json:"status"` // firing or resolved
	Severity    string            `json:"severity"`
	Summary     string            `json:"summary"`
	Instance    string            `json:"instance,omitempty"`
	Peer        string            `json:"peer,omitempty"`
	VHost       string            `json:"vhost,omitempty"`
	Queue       string            `json:"queue,omitempty"`
	Action      string            `json:"action,omitempty"`
	Detail      string            `json:"detail,omitempty"`
	Count       int64             `json:"count,omitempty"`
	Queues      int               `json:"queues,omitempty"`
	FirstAt     string            `json:"first_deadline,omitempty"`
	LastAt      string            `json:"last_deadline,omitempty"`
	WorstMillis int64             `json:"worst_lateness_ms"`
	StartsAt    time.Time         `json:"starts_at"`
	EndsAt      *time.Time        `json:"ends_at,omitempty"`
	Fingerprint string            `json:"fingerprint"`
	Top         []eventQueue      `json:"top_queues,omitempty"`
	Links       map[string]string `json:"links,omitempty"`
}

type eventQueue struct {
	VHost       string `json:"vhost"`
	Queue       string `json:"queue"`
	Count       int64  `json:"count"`
	WorstMillis int64  `json:"worst_lateness_ms"`
}

func (c *cloudEvents) send(ctx context.Context, n *notification) error {
	e := c.source.event(n)
	body, header, err := e.structured()
	if c.binary {
		body, header, err = e.binary()
	}
	if err != nil {
		return backoff.Permanent(fmt.Errorf("alert: encode: %w", err))
	}
	return c.post(ctx, body, header)
}

const structuredType = "application/cloudevents+json; charset=utf-8"

func (e *cloudEvent) structured() ([]byte, http.Header, error) {
	body, err := json.Marshal(e)
	return body, http.Header{"Content-Type": {structuredType}}, err
}

// binary has the attributes in headers, percent-encoded as that binding wants it.
func (e *cloudEvent) binary() ([]byte, http.Header, error) {
	body, err := json.Marshal(e.Data)
	header := http.Header{"Content-Type": {e.DataContentType}}
	for name, value := range map[string]string{
		"specversion": e.SpecVersion, "id": e.ID, "source": e.Source, "type": e.Type, "subject": e.Subject,
		"time": e.Time.Format(time.RFC3339Nano), "severitytext": e.SeverityText, "severitynumber": fmt.Sprint(e.SeverityNumber),
	} {
		if value != "" {
			header.Set("ce-"+name, percentEncode(value))
		}
	}
	return body, header, err
}

// percentEncode encodes what may not stand in a header: space, double quote, percent
// and all that is not printable ASCII (CloudEvents: HTTP Protocol Binding 3.1.3.2).
func percentEncode(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c == '"' || c == '%' || c > '~' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// severityNumbers are OpenTelemetry's.
var severityNumbers = map[string]int{"critical": 21, "error": 17, "warning": 13, "info": 9, "none": 5}

// event is a group as an event.
func (s source) event(n *notification) *cloudEvent {
	d := s.data(n.key.kind, n.total)
	d.Status, d.Severity, d.Summary = n.status(), n.severity(), n.summary()
	d.VHost, d.Queue, d.Peer = n.key.vhost, n.key.queue, n.key.peer
	d.StartsAt, d.Fingerprint, d.Queues = n.startsAt.UTC(), n.fingerprint(), n.queues()
	if n.resolved() {
		d.ends(n.at)
	}
	if len(n.alerts) == 1 {
		a := &n.alerts[0]
		d.VHost, d.Queue, d.Action, d.Detail = a.vhost, a.queue, a.action, a.detail
	}
	for _, o := range n.offenders() {
		d.Top = append(d.Top, eventQueue{o.vhost, o.queue, o.Count, o.WorstMillis})
	}
	return s.wrap(n.key.kind, n.at, d)
}

// alertEvent is one alert as an event.
func (s source) alertEvent(a *alert, at time.Time) *cloudEvent {
	d := s.data(a.kind, a.Tally)
	d.Status, d.Severity, d.Summary = a.status(), a.severity, a.summary()
	d.VHost, d.Queue, d.Peer, d.Action, d.Detail = a.vhost, a.queue, a.peer, a.action, a.detail
	d.StartsAt, d.Fingerprint = a.startsAt.UTC(), a.fingerprint()
	if !a.endsAt.IsZero() {
		d.ends(a.endsAt)
	}
	return s.wrap(a.kind, at, d)
}

func (s source) data(k Kind, t Tally) eventData {
	d := eventData{Event: kinds[k].event, Alertname: k.String(), Instance: s.instance, Count: t.Count, WorstMillis: t.WorstMillis}
	if t.FirstDeadlineAt != 0 {
		d.FirstAt = stamp(t.FirstDeadlineAt)
	}
	if t.LastDeadlineAt != 0 {
		d.LastAt = stamp(t.LastDeadlineAt)
	}
	d.Links = make(map[string]string)
	if s.externalURL != "" {
		d.Links["curfew"] = s.externalURL
	}
	if url := s.runbook(k); url != "" {
		d.Links["runbook"] = url
	}
	return d
}

func (d *eventData) ends(at time.Time) {
	at = at.UTC()
	d.EndsAt = &at
}

// wrap makes an event of d. Its ID is the same when it is sent again.
func (s source) wrap(k Kind, at time.Time, d eventData) *cloudEvent {
	e := &cloudEvent{
		SpecVersion: "1.0", Time: at.UTC(), DataContentType: "application/json", Data: d,
		ID:           fmt.Sprintf("%s-%s-%d", d.Fingerprint, d.Status, at.UnixNano()),
		Type:         "io.curfew." + kinds[k].cloudEvent + ".v1",
		Source:       "/curfew/" + url.PathEscape(orDefault(s.instance, "curfew")),
		SeverityText: d.Severity, SeverityNumber: severityNumbers[d.Severity],
	}
	switch {
	case d.Queue != "":
		e.Subject = d.VHost + "/" + d.Queue
	case d.VHost != "":
		e.Subject = d.VHost
	case d.Peer != "":
		e.Subject = d.Peer
	}
	return e
}
