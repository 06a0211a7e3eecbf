package alert

import (
	"net/url"
	"strings"
)

// parkedIn is the queue that parked dead letters are in.
const parkedIn = "curfew.undeliverable"

// links are the dashboard's pages about an incident, by what they show. Each is a path with a query.
func (k key) links() map[string]string {
	if k.queue == "" || k.queue == otherQueues {
		return nil
	}
	queue := url.Values{"vhost": {k.vhost}, "name": {k.queue}}
	list := map[string]string{"queue": "/queue?" + queue.Encode()}
	switch k.kind {
	case DeadlineMissed, DeadlineFiredLate:
		list["audit"] = "/audit?" + url.Values{"vhost": {k.vhost}, "queue": {k.queue}}.Encode()
	case DeadLetterUnroutable:
		list["dead_letters"] = "/dead-letter?" + url.Values{"vhost": {k.vhost}, "name": {parkedIn}, "queue": {k.queue}}.Encode()
	}
	return list
}

// page is the address of the dashboard's page that says most about an incident: the queue's, or the list of alerts. It
// is "" if the alerts file does not say where the dashboard is.
func (s source) page(k key) string {
	switch base := strings.TrimSuffix(s.externalURL, "/"); {
	case base == "":
		return ""
	case k.links()["dead_letters"] != "":
		return base + k.links()["dead_letters"]
	case k.links()["queue"] != "":
		return base + k.links()["queue"]
	default:
		return base + "/alerts"
	}
}

// pages are the addresses of all pages about an incident, by what they show; the runbook is one of them.
func (s source) pages(k key) map[string]string {
	list := make(map[string]string)
	if base := strings.TrimSuffix(s.externalURL, "/"); base != "" {
		for what, path := range k.links() {
			list[what] = base + path
		}
	}
	if page := s.runbook(k.kind); page != "" {
		list["runbook"] = page
	}
	return list
}
