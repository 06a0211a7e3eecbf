package alert

import (
	"context"
	"time"
)

// pagerDuty sends events to PagerDuty (PagerDuty: Events API v2). A group is one
// incident there: its notifications share a dedup_key. A message told for itself is an
// incident of its own, which a person resolves, or PagerDuty after the service's
// auto-resolve time: a missed deadline stays missed, and an incident that is resolved
// at once may page nobody.
type pagerDuty struct {
	*poster
	source source
	key    string
}

// maxDutySummary is the limit of a summary, in characters.
const maxDutySummary = 1024

type dutyEvent struct {
	RoutingKey  string       `json:"routing_key"`
	EventAction string       `json:"event_action"`
	DedupKey    string       `json:"dedup_key"`
	Payload     *dutyPayload `json:"payload,omitempty"`
	Client      string       `json:"client,omitempty"`
	ClientURL   string       `json:"client_url,omitempty"`
	Links       []dutyLink   `json:"links,omitempty"`
}

type dutyPayload struct {
	Summary   string            `json:"summary"`
	Source    string            `json:"source"`
	Severity  string            `json:"severity"`
	Timestamp string            `json:"timestamp"`
	Component string            `json:"component"`
	Group     string            `json:"group,omitempty"`
	Class     string            `json:"class"`
	Details   map[string]string `json:"custom_details"`
}

type dutyLink struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

func (p *pagerDuty) send(ctx context.Context, n *notification) error {
	return p.postJSON(ctx, p.event(n))
}

func (p *pagerDuty) event(n *notification) dutyEvent {
	e := dutyEvent{
		RoutingKey:  p.key,
		EventAction: "trigger",
		DedupKey:    "curfew/" + cut(p.source.instance, 64) + "/" + n.fingerprint(),
	}
	if n.resolved() {
		e.EventAction = "resolve"
		return e
	}
	e.Client, e.ClientURL = "Curfew", p.source.externalURL
	if url := p.source.runbook(n.key.kind); url != "" {
		e.Links = []dutyLink{{url, "Runbook"}}
	}
	e.Payload = &dutyPayload{
		Summary:   cut(n.summary(), maxDutySummary),
		Source:    orDefault(p.source.instance, "curfew"),
		Severity:  dutySeverity(n.severity()),
		Timestamp: n.startsAt.UTC().Format(time.RFC3339Nano),
		Component: "curfew",
		Group:     n.key.vhost,
		Class:     kinds[n.key.kind].event,
		Details:   n.annotations(),
	}
	return e
}

func dutySeverity(severity string) string {
	if severity == "none" {
		return "info"
	}
	return severity
}
