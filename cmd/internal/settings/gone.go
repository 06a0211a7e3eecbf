package settings

import (
	"cmp"
	"fmt"
	"strings"
)

const (
	inAlertsFile = "it is in the file that CURFEW_ALERTS names now, as "
	sinkInFile   = "it is a URL in CURFEW_ALERT_URLS, or a sink in the file that CURFEW_ALERTS names: "
	constant     = "it cannot be changed any more: "
)

// goneVariables maps to what replaces each variable of earlier versions. Ignoring one would mean running
// with another configuration than the operator wanted.
var goneVariables = map[string]string{
	"CURFEW_ALERT_RULES":                 "CURFEW_ALERTS names the file now; its rules are as before",
	"CURFEW_ALERT_WEBHOOK_URL":           sinkInFile + "webhook+https://...",
	"CURFEW_ALERT_WEBHOOK_SECRET":        inAlertsFile + "the field secret or secretFile of the sink",
	"CURFEW_ALERT_ALERTMANAGER_URL":      sinkInFile + "alertmanager+http://... for each Alertmanager of a cluster",
	"CURFEW_ALERT_SLACK_URL":             sinkInFile + "https://hooks.slack.com/services/T/B/X is slack://hook:T-B-X@webhook",
	"CURFEW_ALERT_PAGERDUTY_ROUTING_KEY": sinkInFile + "pagerduty:///KEY",
	"CURFEW_ALERT_PAGERDUTY_URL":         sinkInFile + "pagerduty://events.eu.pagerduty.com/KEY for the EU",
	"CURFEW_ALERT_CLOUDEVENTS_URL":       "there are no CloudEvents any more; " + sinkInFile + "webhook+https://... or amqp:curfew.events",
	"CURFEW_ALERT_CLOUDEVENTS_MODE":      "there are no CloudEvents any more",
	"CURFEW_ALERT_AMQP":                  sinkInFile + "amqp:curfew.events, as JSON",
	"CURFEW_ALERT_ALLOW":                 "nothing replaces it: sinks may be anywhere",
	"CURFEW_ALERT_GROUP_BY":              inAlertsFile + "defaults.group",
	"CURFEW_ALERT_GROUP_WAIT":            inAlertsFile + "defaults.wait",
	"CURFEW_ALERT_GROUP_INTERVAL":        inAlertsFile + "defaults.interval",
	"CURFEW_ALERT_REPEAT_INTERVAL":       inAlertsFile + "defaults.repeat",
	"CURFEW_ALERT_RATE_LIMIT":            constant + "60 notifications a minute to each sink, above the first ten",
	"CURFEW_ALERT_EXTERNAL_URL":          inAlertsFile + "externalURL",
	"CURFEW_ALERT_RUNBOOK_BASE":          inAlertsFile + "runbooksURL",
	"CURFEW_HEARTBEAT_URL":               inAlertsFile + "deadManSwitch.url or urlFile",
	"CURFEW_HEARTBEAT_INTERVAL":          inAlertsFile + "deadManSwitch.every",
	"CURFEW_REDIS_SHARDS":                constant + "4 sorted sets; if it was another number, the old ones can be deleted in Redis, and the schedule is written again",
	"CURFEW_MISS_THRESHOLD":              constant + "a second; the field lateness of a rule sets from when it notifies",
	"CURFEW_RISK_PERCENT":                constant + "50",
	"CURFEW_AUDIT_SIZE":                  constant + "512 MiB",
	"CURFEW_CHANNEL_MAX":                 constant + "2047",
	"CURFEW_FRAME_MAX":                   constant + "131072 bytes",
	"CURFEW_MAX_QUEUES":                  constant + "50000 in a virtual host; the limit max-queues of a virtual host may be lower",
	"CURFEW_MAX_EXCHANGES":               constant + "10000 in a virtual host",
	"CURFEW_MAX_BINDINGS":                constant + "200000 of an exchange",
	"CURFEW_IDLE_MINIMUM":                constant + "5m",
	"CURFEW_SCHEDULE_WINDOW":             constant + "20ms",
	"CURFEW_HEARTBEAT":                   constant + "60s are offered, and a client may ask for another heartbeat or none",
	"CURFEW_WATCH_FILE":                  "CURFEW_WATCH takes the path of the file; it begins with / or .",
	"CURFEW_COMPAT_RABBITMQ_VERSION":     constant + "4.1.0",
}

// gone is the error about a variable of an earlier version, or about its _FILE; nil if there never was one.
func gone(name string) error {
	replacement := cmp.Or(goneVariables[name], goneVariables[strings.TrimSuffix(name, "_FILE")])
	if replacement == "" {
		return nil
	}
	return fmt.Errorf("%s: there is no such variable any more; %s", name, replacement)
}
