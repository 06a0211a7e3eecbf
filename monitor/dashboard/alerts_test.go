package dashboard

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/monitor/alert"
)

// TestMistakesInRules: the overview is not content, and the page of alerts has each of them, as text.
func TestMistakesInRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte("rules:\n  - severity: <b>\n  - count: 0\n"), 0o600))
	alerts, err := alert.New(alert.Options{File: file})
	require.NoError(t, err)
	s := newSite(t)
	require.NotContains(t, s.logIn("root").get("/alerts").body, "not in force")
	s.with(func(o *Options) { o.Alerts = alerts })
	s.logIn("root")
	require.Contains(t, s.get("/").body, "Alerts do not arrive where they should")
	page := s.get("/alerts").body
	require.Contains(t, page, "The alerts file is not in force")
	require.Contains(t, page, file+":2: rules[0].severity: &#34;&lt;b&gt;&#34; is invalid")
	require.Contains(t, page, file+":3: rules[1].count")
}

// TestAlertsByQueue: a queue's alerts stand together, each says what happened once, and leads to where it can be seen.
func TestAlertsByQueue(t *testing.T) {
	s := newSite(t)
	for _, e := range []alert.Event{
		{Kind: alert.DeadlineMissed, VHost: "/", Queue: "a&b", Action: "dropped", Stats: alert.Stats{Count: 7}},
		{Kind: alert.DeadLetterUnroutable, VHost: "/", Queue: "a&b", Action: "parked", Stats: alert.Stats{Count: 3}},
		{Kind: alert.HeldPastDeadline, VHost: "/", Queue: "other", Stats: alert.Stats{Count: 1}},
	} {
		s.alerts.Record(e)
	}
	s.alerts.Degraded("it is away")
	page := s.logIn("root").get("/alerts").body
	require.Equal(t, 1, strings.Count(page, `<a href="/queue?name=a%26b&amp;vhost=%2F">a&amp;b</a>`), "one heading for two alerts")
	require.Contains(t, page, "Messages expired unconsumed: 7<br>")
	require.Contains(t, page, `href="/audit?queue=a%26b&amp;vhost=%2F"`)
	require.Contains(t, page, `href="/dead-letter?name=curfew.undeliverable&amp;queue=a%26b&amp;vhost=%2F"`)
	require.Contains(t, page, `<th scope="rowgroup" colspan="6">Curfew itself</th>`)
	require.Contains(t, page, "Declare the dead-letter exchange")
	require.NotContains(t, page, "What to do", "nobody has said where the runbooks are")
}

// TestMostUrgentAlert is named in words where there are several, and the rows are in that order.
func TestMostUrgentAlert(t *testing.T) {
	s := newSite(t)
	s.alerts.AtRisk(alert.Risk{VHost: "/", Queue: "later", Count: 900})
	require.NotContains(t, s.logIn("root").get("/alerts").body, "Most urgent", "there is one alert")
	s.alerts.Record(alert.Event{Kind: alert.DeadlineMissed, VHost: "/", Queue: "gone", Action: "dropped", Stats: alert.Stats{Count: 2}})
	s.alerts.AtRisk(alert.Risk{VHost: "/", Queue: "gone", Count: 5})
	page := s.get("/alerts").body
	require.Contains(t, page, "<b>Most urgent: </b>messages expired unconsumed: 2 in queue &#34;gone&#34; of vhost &#34;/&#34;. Add consumers")
	var order []string
	for _, found := range regexp.MustCompile(`(?:name=(\w+)&amp;vhost=%2F">|<td>(Messages [a-z ]+))`).FindAllStringSubmatch(page[strings.Index(page, "<thead>"):], -1) {
		order = append(order, found[1]+found[2])
	}
	require.Equal(t, []string{"gone", "Messages expired unconsumed", "later", "Messages are at risk of expiring", "gone", "Messages are at risk of expiring"}, order)
	_, err := s.alerts.AddSilence(alert.Silence{ExpiresAt: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.NotContains(t, s.get("/alerts").body, "Most urgent", "all are silenced")
}

// TestRunbooks are linked where the alerts file says where they are.
func TestRunbooks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "alerts.yaml")
	require.NoError(t, os.WriteFile(file, []byte("runbooksURL: https://wiki.example/runbooks\n"), 0o600))
	alerts, err := alert.New(alert.Options{File: file})
	require.NoError(t, err)
	alerts.Degraded("it is away")
	s := newSite(t)
	s.with(func(o *Options) { o.Alerts = alerts })
	require.Contains(t, s.logIn("root").get("/alerts").body, `<a href="https://wiki.example/runbooks/CurfewScheduleDegraded.md" rel="external noopener">What to do</a>`)
}
