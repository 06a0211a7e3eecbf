package dashboard

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/monitor"
	"curfew/monitor/incident"
)

// withIncidents makes s one that shows what is wrong in a state.
func (s *site) withIncidents(file string, wrong func(*incident.State)) {
	s.Helper()
	list, err := incident.New(incident.Options{File: file, Look: func(now *incident.State) {
		if now.Forecasts = s.monitor.forecasts; wrong != nil {
			wrong(now)
		}
	}})
	require.NoError(s, err)
	s.with(func(o *Options) { o.Incidents = list })
}

// TestMistakesInRules: the overview is not content, and the page of incidents has each of them, as text.
func TestMistakesInRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte("rules:\n  - severity: <b>\n  - count: 0\n"), 0o600))
	s := newSite(t)
	require.NotContains(t, s.logIn("root").get("/incidents").body, "The alerts file is not in force")
	s.withIncidents(file, nil)
	s.logIn("root")
	require.Contains(t, s.get("/").body, "The alerts file is not in force")
	page := s.get("/incidents").body
	require.Contains(t, page, file+":2: rules[0].severity: &#34;&lt;b&gt;&#34; is invalid")
	require.Contains(t, page, file+":3: rules[1].count")
}

// TestIncidents: each has its level, queues with links, what to do and the command that shows more; the worst comes first. The overview says
// the same.
func TestIncidents(t *testing.T) {
	file := filepath.Join(t.TempDir(), "alerts.yaml")
	require.NoError(t, os.WriteFile(file, []byte("runbooksURL: https://wiki.example/runbooks\n"), 0o600))
	s := newSite(t)
	s.withIncidents(file, func(now *incident.State) {
		now.Recovered = 2
		now.Parked = []incident.Depth{{QueueName: incident.QueueName{VHost: "shop", Name: "curfew.undeliverable"}, Count: 13967}}
	})
	s.logIn("root")
	for _, path := range []string{"/", "/incidents"} {
		page := s.get(path).body
		require.Contains(t, page, "Dead letters are parked: curfew.undeliverable (vhost shop): 13,967 dead letters parked", path)
		require.Contains(t, page, "Declare the exchange or the queue that is missing", path)
		require.Less(t, strings.Index(page, "Dead letters are parked"), strings.Index(page, "Messages were found without"), path)
		require.NotContains(t, page, "All is well", path)
	}
	page := s.get("/incidents").body
	require.Contains(t, page, `<span class="command"><code>curfew dlq groups curfew.undeliverable --vhost shop</code> <button type="button" class="quiet" data-copy="" aria-label="Copy curfew dlq groups curfew.undeliverable --vhost shop">Copy</button></span>`)
	require.Contains(t, page, `href="/dead-letter?vhost=shop&amp;name=curfew.undeliverable"`)
	require.Contains(t, page, `<a href="https://wiki.example/runbooks/CurfewDeadLetterUnroutable.md" rel="external noopener">What to do</a>`)
	require.Contains(t, newSite(t).logIn("root").get("/").body, "All is well: all deadlines are watched, and none is late")
}

// TestQueuesOfAnIncident: the page of a queue says what the incident about it says, and where that is. Such queues are first among all.
func TestQueuesOfAnIncident(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"calm", "parked", "parked.too"} {
		s.queue("/", name, nil)
	}
	s.monitor.forecasts = []deadline.Forecast{{VHost: "/", Queue: "calm", AtRisk: 9, Deadlines: 12, FirstMiss: 1}, {VHost: "/", Queue: "parked", AtRisk: 2, Deadlines: 2, FirstMiss: 2}}
	s.wrong = func(now *incident.State) {
		now.Parked = []incident.Depth{{QueueName: incident.QueueName{VHost: "/", Name: "parked"}, Count: 9, Do: "Declare it: `curfew declare exchange x`."}, {QueueName: incident.QueueName{VHost: "/", Name: "parked.too"}, Count: 2}}
	}
	s.logIn("root")
	list := s.get("/queues").body
	require.Equal(t, []string{"parked", "parked.too", "calm"}, rows(list))
	link := regexp.MustCompile(`href="(/incidents#incident-\w+)"`).FindStringSubmatch(list)
	require.NotNil(t, link)
	const summary = "Dead letters are parked: parked (vhost /): 9 dead letters parked, which had nowhere to go; and 1 queue more, 11 in all"
	for name, also := range map[string]string{"parked": "", "parked.too": "This queue: 2 dead letters parked"} {
		page := s.get("/queue?vhost=/&name=" + name).body
		require.Contains(t, page, `<a href="`+link[1]+`">`+summary)
		require.Regexp(t, `Declare it: <span class="command"><code>curfew declare exchange x</code> <button .*>Copy</button></span>\. <span class="command"><code>curfew dlq groups parked --vhost /</code>`, page)
		require.Contains(t, page, also)
		require.Contains(t, page, "critical")
		require.NotContains(t, page, "Add consumers", "no other advice")
	}
	require.Contains(t, s.get("/queue?vhost=/&name=calm").body, "Add consumers")
}

// TestNobodyKnowsWhatIsLate while Curfew has no processor, so the overview does not say that nothing is.
func TestNobodyKnowsWhatIsLate(t *testing.T) {
	s := newSite(t)
	s.withIncidents("", func(now *incident.State) { now.Starved = time.Second })
	page := s.logIn("root").get("/").body
	require.Contains(t, page, "All is well: all deadlines are watched, but some may have fired late")
	require.Contains(t, page, "Curfew had no processor: ")
}

// TestWhatConsumersHeldIsNotLate, and the overview says so, with the count and at each lateness.
func TestWhatConsumersHeldIsNotLate(t *testing.T) {
	s := newSite(t)
	s.monitor.health.Held = 12
	s.monitor.expiries = []monitor.RecentExpiry{{VHost: "/", Queue: "a", Path: "requeue", Count: 12, WorstMillis: 40_000}, {VHost: "/", Queue: "b", Path: "eager", Count: 1}}
	page := s.logIn("eye").get("/").body
	require.Contains(t, page, "all deadlines are watched, and none is late, besides 12 that consumers held")
	require.Equal(t, 1, strings.Count(page, "held by a consumer"))
}

// TestAcknowledge: with a button, which only an administrator has.
func TestAcknowledge(t *testing.T) {
	s := newSite(t)
	s.wrong = func(now *incident.State) { now.Blocked = "low on disk" }
	require.NotContains(t, s.logIn("eye").get("/incidents").body, "/incidents/ack")
	page := s.logIn("root").get("/incidents").body
	require.Contains(t, page, `action="/incidents/ack"`)
	id := s.incidents.View().Open[0].ID
	require.Contains(t, page, `name="comment"`)
	form := url.Values{"id": {id}, "token": {s.ownToken()}, "comment": {"on it"}, "duration": {"1h"}}
	page = s.post("/incidents/ack", form).body
	require.Regexp(t, `acknowledged by .*root.* until .*: on it`, page)
	require.Contains(t, page, "for the time that you chose. Publishers are blocked: low on disk", "which incident it was")
	require.Equal(t, "root", s.incidents.View().Open[0].Ack.By)
	require.Contains(t, s.post("/incidents/unack", form).body, `action="/incidents/ack"`)
	require.Nil(t, s.incidents.View().Open[0].Ack)
	form.Set("id", "none")
	require.Equal(t, http.StatusNotFound, s.post("/incidents/ack", form).status)
	_, err := s.incidents.AddWindow(incident.Window{Queue: "a*", Comment: "migration", Until: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.Contains(t, s.get("/incidents").body, "migration")
}

// TestQueuesInIncidents: the grid and the list of queues show which they are.
func TestQueuesInIncidents(t *testing.T) {
	s := newSite(t)
	s.queue("/", "parked", nil)
	s.queue("/", "fine", nil)
	s.withIncidents("", func(now *incident.State) {
		now.Parked = []incident.Depth{{QueueName: incident.QueueName{VHost: "/", Name: "parked"}, Count: 3}}
	})
	s.foresee(deadline.Forecast{VHost: "/", Queue: "parked", AtRisk: 5, FirstMiss: time.Now().Add(time.Minute).UnixMilli()})
	s.logIn("root")
	overview := s.get("/").body
	require.NotContains(t, overview, "Next:", "the queue has cost messages already")
	require.Contains(t, overview, `<a class="broken" href="/queue?name=parked&amp;vhost=%2F" title="parked: in a critical incident, `)
	require.Contains(t, overview, `<a class="idle" href="/queue?name=fine&amp;vhost=%2F"`)
	list := s.get("/queues").body
	require.Regexp(t, `>parked</a> <a href="/incidents#incident-\w+"><span class="tag bad">critical</span></a></td>`, list)
	require.Equal(t, 1, strings.Count(list, "tag bad"))
}

// TestTheNextLoss is of a queue that loses nothing yet. What is dead-lettered is no loss, and comes after what is gone for good.
func TestTheNextLoss(t *testing.T) {
	s := newSite(t)
	s.queue("/", "gone", nil)
	s.queue("/", "saved", amqp.Table{"x-dead-letter-exchange": "amq.direct"})
	s.withIncidents("", func(*incident.State) {})
	gone := deadline.Forecast{VHost: "/", Queue: "gone", AtRisk: 5, FirstMiss: time.Now().Add(time.Hour).UnixMilli()}
	saved := deadline.Forecast{VHost: "/", Queue: "saved", AtRisk: 7, FirstMiss: time.Now().Add(time.Minute).UnixMilli()}
	s.foresee(gone, saved)
	s.logIn("root")
	require.Regexp(t, `Next: <a href="/queue\?name=gone&amp;vhost=%2F">gone</a>.* will lose 5 messages`, s.get("/").body)
	s.foresee(saved)
	require.Regexp(t, `Next: <a href="/queue\?name=saved&amp;vhost=%2F">saved</a>.* will dead-letter 7 messages`, s.get("/").body)
	s.queue("/", "parks", amqp.Table{"x-dead-letter-exchange": "gone"})
	s.foresee(deadline.Forecast{VHost: "/", Queue: "parks", AtRisk: 7, FirstMiss: time.Now().Add(time.Minute).UnixMilli()})
	require.Regexp(t, `>parks</a>.* will park 7 messages`, s.get("/").body)
}
