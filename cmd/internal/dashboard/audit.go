package dashboard

import (
	"context"
	"maps"
	"net/http"
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
	On      bool
	Form    *ui.Form
	Records []audit.Record
	More    bool // there are older ones
	TooLong bool // the search was stopped before it was complete
	Asked   bool // a field is filled in
	Kinds   []ui.Choice
	CSV     string
	JSONL   string
}

// auditWithin has the time spans to choose from.
var auditWithin = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

func (d *Dashboard) audit(r *http.Request, _ ui.Visitor) (ui.View, error) {
	v := r.URL.Query()
	plain := len(v) == 0
	if plain {
		v.Set("reason", audit.Changed) // not the flood of expiries
	}
	p := &auditPage{On: d.Audit != nil, Form: ui.NewForm(r.URL.Query())}
	for _, k := range []ui.Choice{{Name: "Changes", URL: audit.Changed}, {Name: "Expiries", URL: "expired"}, {Name: "Everything"}} {
		of := maps.Clone(v)
		of.Set("reason", k.URL)
		if k.URL == v.Get("reason") {
			k.URL = ""
		} else {
			k.URL = "/audit?" + of.Encode()
		}
		p.Kinds = append(p.Kinds, k)
	}
	if !p.On {
		return p, nil
	}
	v.Set("message_id", strings.TrimSpace(v.Get("message_id")))
	q, err := audit.QueryOf(v)
	if err != nil {
		return nil, err
	}
	p.Asked = !plain && (len(q.Values()) > 0 || v.Get("within") != "")
	if span, ok := auditWithin[v.Get("within")]; ok {
		q.From = time.Now().Add(-span).Truncate(time.Second)
	}
	p.CSV, p.JSONL = ui.With("/audit/export", q.Values(), "format", "csv"), ui.With("/audit/export", q.Values(), "format", "jsonl")
	q.Limit, q.Newest = auditRows+1, true
	most := auditTime
	if plain {
		most = auditGlance
	}
	ctx, cancel := context.WithTimeout(r.Context(), most)
	defer cancel()
	return p, p.find(ctx, d.Audit.Dir(), q)
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
