package dashboard

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReplayIsTriedFirst: the form only tries; what was tried is carried out when confirmed, with the same filter.
func TestReplayIsTriedFirst(t *testing.T) {
	s := newSite(t).logIn("root")
	s.letters.letters = []Letter{{Deaths: []Death{{Queue: "q", Reason: "expired", Count: 1}}}}
	const page = "/dead-letter?vhost=/&name=dlq&reason=expired&body=abc"
	form := url.Values{
		"token": {s.token(page)}, "vhost": {"/"}, "name": {"dlq"}, "reason": {"expired"}, "body": {"abc"}, "to": {"queue"}, "ttl": {"none"}, "limit": {"10"}, "rate": {"2.5"},
	}
	want := ReplayOrder{VHost: "/", Queue: "dlq", Filter: LetterFilter{Reason: "expired", Body: "abc"}, TTL: "none", To: "queue", Limit: 10, Rate: 2.5, DryRun: true}
	a := s.post("/dead-letters/replay", form)
	require.Equal(t, http.StatusOK, a.status)
	require.Equal(t, []ReplayOrder{want}, s.letters.orders)
	require.Contains(t, a.body, "Replay 3 messages?")
	require.Contains(t, a.body, "have no time left")

	confirmed := url.Values{}
	for _, field := range hiddenFields(a.body) {
		confirmed.Set(field[0], field[1])
	}
	a = s.post("/dead-letters/replay", confirmed)
	require.Equal(t, "/dead-letters", a.path)
	want.DryRun = false
	require.Equal(t, want, s.letters.orders[1], "what was shown is what is done")
}

func TestReplayTakesAnAdministrator(t *testing.T) {
	s := newSite(t).logIn("eye")
	require.Contains(t, s.get("/dead-letter?vhost=/&name=dlq").body, "may not read")
	form := url.Values{"token": {s.d.sessions.tokenOf(s.secret())}, "name": {"dlq"}, "confirmed": {"1"}, "id": {"r1"}}
	require.Equal(t, http.StatusForbidden, s.post("/dead-letters/replay", form).status)
	s.logIn("root")
	form.Del("token")
	require.Equal(t, http.StatusForbidden, s.post("/dead-letters/replay", form).status, "no token")
	require.Empty(t, s.letters.orders)
	require.Empty(t, s.letters.cancelled)
}

func TestBadReplaysAreRefused(t *testing.T) {
	s := newSite(t).logIn("root")
	token := s.token("/alerts")
	for field, value := range map[string]string{"limit": "-1", "rate": "NaN"} {
		a := s.post("/dead-letters/replay", url.Values{"token": {token}, field: {value}})
		require.Equal(t, http.StatusBadRequest, a.status, field)
	}
	require.Empty(t, s.letters.orders)
}

func TestReplayIsCancelled(t *testing.T) {
	s := newSite(t).logIn("root")
	s.letters.replays = []Replay{{ID: "r7", Queue: "dlq", State: "running", Total: 10, Scanned: 5}}
	a := s.get("/dead-letters")
	require.Contains(t, a.body, `value="50"`)
	a = s.post("/dead-letters/cancel", url.Values{"token": {s.token("/dead-letters")}, "id": {"r7"}})
	require.Equal(t, "/dead-letters", a.path)
	require.Equal(t, []string{"r7"}, s.letters.cancelled)
}

// TestReplaysAreTheirOwners: users see their own replays, and may cancel them.
func TestReplaysAreTheirOwners(t *testing.T) {
	s := newSite(t).logIn("eye")
	s.letters.replays = []Replay{{ID: "r1", Queue: "dlq", State: "running", User: "root", Error: "of-root"}}
	require.NotContains(t, s.get("/dead-letters").body, "of-root")
	form := url.Values{"token": {s.d.sessions.tokenOf(s.secret())}, "id": {"r1"}}
	require.Equal(t, http.StatusNotFound, s.post("/dead-letters/cancel", form).status)
	require.Empty(t, s.letters.cancelled)

	s.letters.replays = append(s.letters.replays, Replay{ID: "r2", Queue: "dlq", State: "running", User: "eye"})
	form = url.Values{"token": {s.token("/dead-letters")}, "id": {"r2"}}
	require.Equal(t, http.StatusForbidden, s.post("/dead-letters/cancel", url.Values{"id": {"r2"}}).status, "no token")
	require.Equal(t, "/dead-letters", s.post("/dead-letters/cancel", form).path)
	require.Equal(t, []string{"r2"}, s.letters.cancelled)
}

// TestLettersByPage goes to the end, page by page, and keeps the filter.
func TestLettersByPage(t *testing.T) {
	s := newSite(t).logIn("root")
	s.letters.letters = make([]Letter, 2*peekRows+1)
	path, pages := "/dead-letter?vhost=/&name=dlq&reason=rejected", 0
	for path != "" {
		path = linkTo(s.get(path).body, "next")
		pages++
	}
	require.Equal(t, 3, pages)
	require.Equal(t, LetterFilter{Reason: "rejected"}, s.letters.filters[2])
}
