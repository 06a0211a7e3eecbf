package alert

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLinks: an alert about one queue links to it, with everything in its name escaped; others link to the list.
func TestLinks(t *testing.T) {
	from := source{"here", "https://curfew.example/", "https://runbooks.example"}
	const queue = "/queue?name=a%26b+%23%C3%BC&vhost=%2F"
	expired := key{kind: DeadlineMissed, vhost: "/", queue: "a&b #ü"}
	require.Equal(t, "https://curfew.example"+queue, from.page(expired))
	require.Equal(t, map[string]string{
		"queue": "https://curfew.example" + queue,
		"audit": "https://curfew.example/audit?queue=a%26b+%23%C3%BC&vhost=%2F", "runbook": "https://runbooks.example/CurfewDeadlineMissed.md",
	}, from.pages(expired))
	parked := key{kind: DeadLetterUnroutable, vhost: "v", queue: "q"}
	require.Equal(t, "https://curfew.example/dead-letter?name=curfew.undeliverable&queue=q&vhost=v", from.page(parked))
	for _, k := range []key{{kind: ScheduleDegraded}, {kind: DeadlineMissed, queue: otherQueues}} {
		require.Equal(t, "https://curfew.example/alerts", from.page(k))
	}
	require.Empty(t, source{}.page(expired), "nobody has said where the dashboard is")
	require.Empty(t, source{}.pages(expired))
}

// TestTextsLink: to the queue, unless its name makes the link too long; PagerDuty has it as the page of its client.
func TestTextsLink(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	n := &alert{key: key{kind: DeadlineMissed, vhost: "/", queue: "orders"}, rule: everything, Stats: Stats{Count: 1}, at: at, startsAt: at}
	text, _ := serviceAt(t, "ntfy://ntfy.sh/topic").message(n)
	require.Contains(t, text, "\nhttps://curfew.example/queue?name=orders&vhost=%2F\n")
	_, params := serviceAt(t, "pagerduty:///eb243592faa24ba2a5511afdf565c889").message(n)
	require.Equal(t, "https://curfew.example/queue?name=orders&vhost=%2F", params["client_url"])
	n.queue = strings.Repeat("ü", 127)
	text, _ = serviceAt(t, "ntfy://ntfy.sh/topic").message(n)
	require.Contains(t, text, "\nhttps://curfew.example/alerts\n")
}
