package dashboard

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/operate"
)

// started are the replays that an administrator sees.
func (s *site) started() []deadletters.Replay {
	s.Helper()
	root, _ := s.d.user("root")
	list, err := operate.ListReplays.Do(s.Context(), s.d.Operations, root.Actor, operate.None{})
	require.NoError(s, err)
	return list
}

// TestReplayIsTriedFirst: the form only tries; what was tried is carried out when confirmed, with the same filter.
func TestReplayIsTriedFirst(t *testing.T) {
	s := newSite(t).logIn("root")
	dlq := s.dead(3)
	s.publish(dlq, amqp.Properties{}, "abc and never died")
	const filter, died = `body contains "abc" && reason == "expired"`, `body contains "abc"`
	page := "/dead-letter?vhost=/&name=dlq&filter=" + url.QueryEscape(filter)
	form := url.Values{
		"token": {s.token(page)}, "vhost": {"/"}, "name": {"dlq"}, "filter": {filter}, "to": {"queue"}, "ttl": {"none"}, "limit": {"10"}, "rate": {"2.5"},
	}
	a := s.post("/dead-letters/replay", form)
	require.Equal(t, http.StatusOK, a.status)
	require.Empty(t, s.started())
	require.Contains(t, a.body, "Replay 3 messages?")

	form.Set("filter", died)
	tried := s.post("/dead-letters/replay", form)
	require.Contains(t, tried.body, "never died, so their origin is unknown")

	confirmed := formWith(a.body, "doing")
	a = s.post("/dead-letters/replay", confirmed)
	require.Equal(t, "/runs", a.path)
	require.Contains(t, a.body, "Replay")
	require.Len(t, s.started(), 1)
	want := deadletters.Request{
		VHost: "/", Queue: "dlq", User: "root", Filter: filter,
		Options: deadletters.Options{TTL: "none", To: "queue", Limit: 10, Rate: 2.5, MaxReplays: deadletters.DefaultMaxReplays},
	}
	want.Position = s.started()[0].Position
	require.Equal(t, confirmed.Get("position"), want.Position.String(), "what came after the dry run is left alone")
	require.Equal(t, want, s.started()[0].Request, "what the plan had is what is done")
}

func TestReplayTakesThePermissionToRead(t *testing.T) {
	s := newSite(t).logIn("eye")
	s.dead(1)
	require.Contains(t, s.get("/dead-letter?vhost=/&name=dlq").body, "may not read")
	form := url.Values{"token": {s.ownToken()}, "vhost": {"/"}, "name": {"dlq"}, "confirmed": {"1"}, "id": {"r1"}}
	require.Equal(t, http.StatusForbidden, s.post("/dead-letters/replay", form).status)
	s.permit("eye", "/", ".*", "")
	require.Contains(t, s.get("/dead-letter?vhost=/&name=dlq").body, "Replay…", "no administrator is needed")
	form.Del("confirmed")
	require.Equal(t, http.StatusOK, s.post("/dead-letters/replay", form).status)
	s.logIn("root")
	form.Del("token")
	require.Equal(t, http.StatusForbidden, s.post("/dead-letters/replay", form).status, "no token")
	require.Empty(t, s.started())
}

func TestBadReplaysAreRefused(t *testing.T) {
	s := newSite(t).logIn("root")
	s.dead(1)
	token := s.token("/incidents")
	for field, value := range map[string]string{"limit": "-1", "rate": "NaN", "ttl": "long"} {
		a := s.post("/dead-letters/replay", url.Values{"token": {token}, "vhost": {"/"}, "name": {"dlq"}, field: {value}})
		require.Equal(t, http.StatusBadRequest, a.status, field)
	}
	require.Empty(t, s.started())
}

// begin starts a replay that goes on for long, as a user.
func (s *site) begin(user string) deadletters.Replay {
	s.Helper()
	u, _ := s.d.user(user)
	r, err := operate.StartReplay.Do(s.Context(), s.d.Operations, u.Actor, operate.ReplayRequest{VHost: "/", Queue: "dlq", Options: deadletters.Options{Rate: 0.0001}})
	require.NoError(s, err)
	return r
}

func TestReplayIsCancelled(t *testing.T) {
	s := newSite(t).logIn("root")
	s.kept("r7", `{"id":"r7","vhost":"/","queue":"dlq","state":"failed","total":10,"scanned":5}`)
	s.operates()
	s.logIn("root")
	s.dead(10)
	require.Contains(t, s.get("/runs").body, `value="50"`)
	run := s.begin("root")
	a := s.post("/runs/cancel", url.Values{"token": {s.token("/runs/cancel?id=" + run.ID)}, "id": {run.ID}})
	require.Equal(t, "/runs", a.path)
	require.Equal(t, deadletters.Cancelled, s.started()[0].State)
}

// TestReplaysAreTheirOwners: users see their own replays, and may cancel them.
func TestReplaysAreTheirOwners(t *testing.T) {
	s := newSite(t)
	s.kept("r1", `{"id":"r1","queue":"dlq","state":"failed","user":"root","error":"of-root"}`)
	s.operates()
	s.logIn("eye")
	s.dead(10)
	s.permit("eye", "/", ".*", "")
	roots := s.begin("root")
	require.NotContains(t, s.get("/runs").body, "of-root")
	form := url.Values{"token": {s.ownToken()}, "id": {roots.ID}}
	require.Equal(t, http.StatusNotFound, s.post("/runs/cancel", form).status)

	run, err := s.d.Operations.Replay(t.Context(), deadletters.Request{VHost: "/", Queue: "dlq", User: "eye", Options: deadletters.Options{Rate: 0.0001}})
	require.NoError(t, err)
	form = url.Values{"token": {s.token("/runs/cancel?id=" + run.ID)}, "id": {run.ID}}
	require.Equal(t, http.StatusForbidden, s.post("/runs/cancel", url.Values{"id": {run.ID}}).status, "no token")
	require.Equal(t, "/runs", s.post("/runs/cancel", form).path)
	for _, r := range s.started() {
		require.Equal(t, map[string]deadletters.State{"r1": deadletters.Failed, roots.ID: deadletters.Running, run.ID: deadletters.Cancelled}[r.ID], r.State)
	}
}

const letterRows = 50 // of a page

// TestLettersByPage goes to the end, page by page, and keeps the filter.
func TestLettersByPage(t *testing.T) {
	s := newSite(t).logIn("root")
	dlq := s.dead(5)
	for range 2*letterRows + 1 {
		s.publish(dlq, amqp.Properties{Headers: died("q", "rejected", ""), Has: amqp.HasHeaders}, "")
	}
	path, pages, rejected := "/dead-letter?vhost=/&name=dlq&filter="+url.QueryEscape(`reason == "rejected"`), 0, 0
	for path != "" {
		a := s.get(path)
		rejected += strings.Count(a.body, `name="pick"`)
		path = linkTo(a.body, "next")
		pages++
	}
	require.Equal(t, 3, pages)
	require.Equal(t, 2*letterRows+1, rejected)
}
