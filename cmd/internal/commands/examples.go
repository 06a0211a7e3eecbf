package commands

import "github.com/spf13/cobra"

// examples are those of the commands that have none, or one that is made of an operation's
// fields and is replaced. A test checks each against its command's arguments and flags.
var examples = map[string]string{
	"curfew incident":             "curfew incident ls\n  curfew incident show\n  curfew incident rules\n  curfew incident test",
	"curfew incident ls":          "curfew incident ls --watch",
	"curfew incident show":        "curfew incident show\n  curfew incident show 3f9a01c2b47d",
	"curfew incident ack":         "curfew incident ack 3f9a01c2b47d --for 8h --comment 'on it'",
	"curfew incident maintenance": "curfew incident maintenance --for 2h --queue 'orders*' --comment 'migration of the shop'",
	"curfew incident rules":       "curfew incident rules --conditions",
	"curfew incident test":        "curfew incident test --sink slack",
	"curfew audit export":         "curfew audit export --since 24h --format csv --file expired.csv",
	"curfew audit search":         "curfew audit search --queue orders --since 1h --min-lateness 100ms",
	"curfew config":               "curfew config",
	"curfew deadlines":            "curfew deadlines list\n  curfew deadlines extend orders 17 --by 10m\n  curfew deadlines fire orders --message-id 5f1c",
	"curfew deadlines extend":     "curfew deadlines extend orders 17 --by 10m\n  curfew deadlines extend orders --message-id 5f1c --at 2030-01-01T08:00:00Z",
	"curfew deadlines fire":       "curfew deadlines fire orders --message-id 5f1c",
	"curfew deadlines list":       "curfew deadlines list orders --count 50\n  curfew deadlines list --overdue --watch",
	"curfew deadlines shorten":    "curfew deadlines shorten orders 17 --by 90s",
	"curfew definitions diff":     "curfew definitions diff definitions.json",
	"curfew definitions import":   "curfew definitions import definitions.json",
	"curfew dlq cancel":           "curfew dlq cancel 20300101-080000-1a2b3c4d",
	"curfew dlq export":           "curfew dlq export orders.dead --filter 'died > ago(\"2h\")' --file dead.jsonl",
	"curfew dlq groups":           "curfew dlq groups orders.dead",
	"curfew dlq import":           "curfew dlq import orders.dead dead.jsonl",
	"curfew dlq list":             "curfew dlq list -o json",
	"curfew dlq peek":             "curfew dlq peek orders.dead --count 3",
	"curfew dlq purge":            "curfew dlq purge orders.dead --filter 'reason == \"maxlen\" && died < ago(\"720h\")' --confirm 118",
	"curfew dlq resume":           "curfew dlq resume 20300101-080000-1a2b3c4d",
	"curfew dlq replays":          "curfew dlq replays --watch",
	"curfew dlq search":           "curfew dlq search orders.dead --filter 'reason == \"expired\" && died > ago(\"2h\") && json.customer.id == 7' --newest",
	"curfew history":              "curfew history\n  curfew history orders --span 6h --watch",
	"curfew inject":               "curfew inject -f deploy.yaml",
	"curfew queue":                "curfew queue list\n  curfew queue peek orders --count 3",
	"curfew queue peek":           "curfew queue peek orders --state unacked --tail",
	"curfew queue purge":          "curfew queue purge orders --confirm 118",
	"curfew queue show":           "curfew queue show orders -o json",
	"curfew rabbitmq pause":       "curfew rabbitmq pause",
	"curfew rabbitmq resume":      "curfew rabbitmq resume",
	"curfew rabbitmq status":      "curfew rabbitmq status --watch",
	"curfew runs cancel":          "curfew runs cancel 20300101-080000-1a2b3c4d",
	"curfew runs list":            "curfew runs list --watch",
	"curfew runs show":            "curfew runs show 20300101-080000-1a2b3c4d",
	"curfew top":                  "curfew top --url https://curfew.example.org:15672 --user oncall",
	"curfew status":               "curfew status --watch",
	"curfew version":              "curfew version -o json",
}

func addExamples(c *cobra.Command) {
	for _, sub := range c.Commands() {
		addExamples(sub)
	}
	if text := examples[c.CommandPath()]; text != "" {
		c.Example = "  " + text
	}
}
