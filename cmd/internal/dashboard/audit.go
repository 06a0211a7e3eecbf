package dashboard

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/audit"
)

const (
	// auditRows is how many records one page lists.
	auditRows = 100
	// auditTime bounds a search.
	auditTime = 10 * time.Second
	// auditGlance bounds that for the page without a search.
	auditGlance = 100 * time.Millisecond
)

// auditPage is the content of the audit page.
type auditPage struct {
	On       bool
	Search   auditForm
	Form     *ui.Form // the same, as it was filled in
	Records  []audit.Record
	More     bool // there are older ones
	TooLong  bool // the search was stopped before it was complete
	Asked    bool // a field is filled in
	Kinds    []ui.Choice
	CSV      string
	JSONL    string
	Outcomes []string
	Paths    []string
	Reasons  []string
}

// auditForm is the search as it was filled in.
type auditForm struct{ VHost, Queue, MessageID, User, Reason, Outcome, Path, Within, Lateness string }

// auditWithin has the time spans to choose from.
var auditWithin = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

func (d *Dashboard) audit(r *http.Request, _ ui.Visitor) (ui.View, error) {
	v := r.URL.Query()
	plain := len(v) == 0
	if plain {
		v.Set("reason", audit.Changed) // not the flood of expiries
	}
	p := &auditPage{On: d.Audit != nil, Form: ui.NewForm(r.URL.Query()), Reasons: []string{"expired", "rejected", "maxlen", "delivery_limit", "changed"}, Outcomes: []string{"dead_lettered", "dropped", "parked"}, Paths: []string{"eager", "index", "lazy", "requeue", "manual", "scheduled"}}
	p.Search = auditForm{v.Get("vhost"), v.Get("queue"), strings.TrimSpace(v.Get("message_id")), v.Get("user"), v.Get("reason"), v.Get("outcome"), v.Get("path"), v.Get("within"), strings.TrimSpace(v.Get("min_lateness"))}
	p.Asked = !plain && p.Search != auditForm{}
	for _, k := range []ui.Choice{{Name: "Changes", URL: audit.Changed}, {Name: "Expiries", URL: "expired"}, {Name: "Everything"}} {
		of := maps.Clone(v)
		of.Set("reason", k.URL)
		if k.URL == p.Search.Reason {
			k.URL = ""
		} else {
			k.URL = "/audit?" + of.Encode()
		}
		p.Kinds = append(p.Kinds, k)
	}
	if !p.On {
		return p, nil
	}
	q, err := p.Search.query(time.Now())
	if err != nil {
		return nil, err
	}
	p.export(q)
	most := auditTime
	if plain {
		most = auditGlance
	}
	ctx, cancel := context.WithTimeout(r.Context(), most)
	defer cancel()
	return p, p.find(ctx, d.Audit.Dir(), q)
}

func (f *auditForm) query(now time.Time) (q audit.Query, err error) {
	q = audit.Query{
		VHost: f.VHost, Queue: f.Queue, MessageID: f.MessageID, User: f.User, Reason: f.Reason, Outcome: f.Outcome, Path: f.Path, Limit: auditRows + 1, Newest: true,
	}
	if err := q.Check(); err != nil {
		return q, err
	}
	if span, ok := auditWithin[f.Within]; ok {
		q.From = now.Add(-span).Truncate(time.Second)
	}
	if f.Lateness != "" {
		if q.MinLateness, err = time.ParseDuration(f.Lateness); err != nil {
			return q, fmt.Errorf("the least lateness %q is invalid: want a duration such as 250ms or 2s", f.Lateness)
		}
	}
	return q, nil
}

func (p *auditPage) find(ctx context.Context, dir string, q audit.Query) error {
	for record, err := range audit.Search(ctx, dir, q) {
		if err != nil && ctx.Err() != nil {
			p.TooLong = true
			return nil
		}
		if err != nil {
			return err
		}
		if len(p.Records) == auditRows {
			p.More = true
			break
		}
		p.Records = append(p.Records, record)
	}
	return nil
}

// export makes the links to download all matching records.
func (p *auditPage) export(q audit.Query) {
	v := url.Values{}
	for name, value := range map[string]string{"vhost": q.VHost, "queue": q.Queue, "message_id": q.MessageID, "user": q.User, "reason": q.Reason, "outcome": q.Outcome, "path": q.Path} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if !q.From.IsZero() {
		v.Set("from", q.From.UTC().Format(time.RFC3339))
	}
	if q.MinLateness > 0 {
		v.Set("min_lateness", q.MinLateness.String())
	}
	p.CSV, p.JSONL = ui.With("/audit/export", v, "format", "csv"), ui.With("/audit/export", v, "format", "jsonl")
}
