package settings

import (
	"cmp"
	"fmt"
	"strings"
)

const (
	inAlertsFile = "set it in the file that CURFEW_ALERTS names, as "
	sinkInFile   = "use a URL in CURFEW_ALERT_URLS, or a sink in the file that CURFEW_ALERTS names: "
	constant     = "the value is always "
	ownAlert     = "each queue has an alert of its own, sent once when it begins and once when it is over; Alertmanager and PagerDuty group and repeat"
)

// goneVariables maps each variable of earlier versions to what replaces it. Ignoring one would mean running
// with another configuration than the operator wanted.
var goneVariables = map[string]string{
	"CURFEW_ALERT_RULES":                 "CURFEW_ALERTS now names the file; its rules are as before",
	"CURFEW_ALERT_WEBHOOK_URL":           sinkInFile + "webhook+https://...",
	"CURFEW_ALERT_WEBHOOK_SECRET":        inAlertsFile + "the field secret or secretFile of the sink",
	"CURFEW_ALERT_ALERTMANAGER_URL":      sinkInFile + "alertmanager+http://... for each Alertmanager of a cluster",
	"CURFEW_ALERT_SLACK_URL":             sinkInFile + "https://hooks.slack.com/services/T/B/X is slack://hook:T-B-X@webhook",
	"CURFEW_ALERT_PAGERDUTY_ROUTING_KEY": sinkInFile + "pagerduty:///KEY",
	"CURFEW_ALERT_PAGERDUTY_URL":         sinkInFile + "pagerduty://events.eu.pagerduty.com/KEY for the EU",
	"CURFEW_ALERT_CLOUDEVENTS_URL":       "CloudEvents are no longer sent; " + sinkInFile + "webhook+https://... or amqp:curfew.events",
	"CURFEW_ALERT_CLOUDEVENTS_MODE":      "CloudEvents are no longer sent",
	"CURFEW_ALERT_AMQP":                  sinkInFile + "amqp:curfew.events, as JSON",
	"CURFEW_ALERT_ALLOW":                 "nothing replaces it: sinks may be anywhere",
	"CURFEW_ALERT_GROUP_BY":              ownAlert,
	"CURFEW_ALERT_GROUP_WAIT":            ownAlert,
	"CURFEW_ALERT_GROUP_INTERVAL":        ownAlert,
	"CURFEW_ALERT_REPEAT_INTERVAL":       ownAlert,
	"CURFEW_ALERT_RATE_LIMIT":            constant + "20 alerts a minute, after the first 20",
	"CURFEW_CONTEXT":                     "contexts are gone: set CURFEW_URL, CURFEW_USER and CURFEW_PASSWORD or CURFEW_PASSWORD_FILE, or use --url",
	"CURFEW_ALERT_EXTERNAL_URL":          inAlertsFile + "externalURL",
	"CURFEW_ALERT_RUNBOOK_BASE":          inAlertsFile + "runbooksURL",
	"CURFEW_HEARTBEAT_URL":               inAlertsFile + "deadManSwitch.url or urlFile",
	"CURFEW_HEARTBEAT_INTERVAL":          inAlertsFile + "deadManSwitch.every",
	"CURFEW_REDIS_SHARDS":                constant + "4 (sorted sets); if it was another, the old sets can be deleted in Redis, and the schedule is written again",
	"CURFEW_MISS_THRESHOLD":              constant + "1s; the field lateness of a rule sets from which lateness on it notifies",
	"CURFEW_RISK_PERCENT":                constant + "50",
	"CURFEW_AUDIT_SIZE":                  constant + "512 MiB",
	"CURFEW_CHANNEL_MAX":                 constant + "2047",
	"CURFEW_FRAME_MAX":                   constant + "131072 bytes",
	"CURFEW_MAX_QUEUES":                  constant + "50000 for a virtual host; the limit max-queues of a virtual host may be lower",
	"CURFEW_MAX_EXCHANGES":               constant + "10000 for a virtual host",
	"CURFEW_MAX_BINDINGS":                constant + "200000 for an exchange",
	"CURFEW_HEARTBEAT":                   constant + "60s, and a client may ask for another heartbeat or none",
	"CURFEW_WATCH_FILE":                  "set CURFEW_WATCH to the path of the file, which begins with / or .",
	"CURFEW_COMPAT_RABBITMQ_VERSION":     constant + "4.1.0",
}

// gone is the error about a variable of an earlier version, or about its _FILE; nil if there never was one.
func gone(name string) error {
	replacement := cmp.Or(goneVariables[name], goneVariables[strings.TrimSuffix(name, "_FILE")])
	if replacement == "" {
		return nil
	}
	return fmt.Errorf("%s: this variable no longer exists; %s", name, replacement)
}
