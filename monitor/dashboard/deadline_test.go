package dashboard

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDeadlineIsChangedOnceConfirmed: each button shows what it would do, and does that when confirmed.
func TestDeadlineIsChangedOnceConfirmed(t *testing.T) {
	for _, c := range []struct {
		form  url.Values
		asks  string
		wants DeadlineChange
	}{
		{url.Values{"do": {"extend"}, "by": {"10m"}}, "1970-01-01 00:26:40.000 UTC?", DeadlineChange{Was: 1_000_000, To: 1_600_000}},
		{url.Values{"do": {"shorten"}, "by": {"100s"}}, "expires at once", DeadlineChange{Was: 1_000_000, To: 900_000}},
		{url.Values{"do": {"shorten"}, "by": {"24h"}}, "expires at once", DeadlineChange{Was: 1_000_000, To: 1}},
		{url.Values{"do": {"set"}, "at": {"1970-01-02T00:00:00"}}, "1970-01-02 00:00:00.000 UTC?", DeadlineChange{Was: 1_000_000, To: 86_400_000}},
		{url.Values{"do": {"cancel"}, "by": {"10m"}}, "Take the deadline off", DeadlineChange{Was: 1_000_000}},
		{url.Values{"do": {"fire"}}, "expire now?", DeadlineChange{Was: 1_000_000, Fire: true}},
		{url.Values{"do": {"fire"}, "drop": {"1"}}, "Drop this message now?", DeadlineChange{Was: 1_000_000, Fire: true, Drop: true}},
	} {
		s := deadlineSite(t)
		form := hiddenForm(s.get(deadlineURL("/", "q", 7)).body)
		for name, value := range c.form {
			form[name] = value
		}
		a := s.post("/deadline", form)
		require.Equal(t, http.StatusOK, a.status)
		require.Contains(t, a.body, c.asks)
		require.Empty(t, s.broker.changes, "nothing is done yet")
		a = s.post("/deadline", hiddenForm(a.body))
		require.Equal(t, "/queue", a.path)
		require.Contains(t, a.body, "has its new deadline")
		require.Equal(t, []DeadlineChange{c.wants}, s.broker.changes)
	}
}

// deadlineSite has a queue with one message, and an administrator looks at it.
func deadlineSite(t *testing.T) *site {
	s := newSite(t).logIn("root")
	s.broker.queues = []QueueDetail{{Queue: Queue{VHost: "/", Name: "q"}}}
	s.broker.messages = []Message{{Seq: 7, RoutingKey: "key", Deadline: 1_000_000}}
	return s
}

// hiddenForm is the form of a page as it is sent when nothing is filled in.
func hiddenForm(page string) url.Values {
	form := url.Values{}
	for _, field := range hiddenFields(page) {
		form.Set(field[0], field[1])
	}
	return form
}

func TestDeadlinesAreOfferedToAdministrators(t *testing.T) {
	s := deadlineSite(t)
	require.Contains(t, s.get("/queue?vhost=/&name=q").body, `href="/deadline?name=q&amp;seq=7&amp;vhost=%2F"`)
	require.Equal(t, http.StatusNotFound, s.get("/deadline?vhost=/&name=q&seq=8").status)
	require.Equal(t, http.StatusNotFound, s.get("/deadline?vhost=/&name=q&seq=x").status)

	s.logIn("eye")
	require.NotContains(t, s.get("/queue?vhost=/&name=q").body, "/deadline")
	require.Contains(t, s.get(deadlineURL("/", "q", 7)).body, "may not read")
	form := url.Values{"token": {s.d.sessions.tokenOf(s.secret())}, "vhost": {"/"}, "name": {"q"}, "seq": {"7"}, "do": {"fire"}, "confirmed": {"1"}}
	require.Equal(t, http.StatusForbidden, s.post("/deadline", form).status)
	s.logIn("root")
	require.Equal(t, http.StatusForbidden, s.post("/deadline", form).status, "another session's token")
	require.Empty(t, s.broker.changes)
}

func TestBadDeadlinesAreRefused(t *testing.T) {
	s := deadlineSite(t)
	for _, bad := range []url.Values{
		{"do": {"extend"}, "by": {"soon"}}, {"do": {"extend"}, "by": {"-1m"}}, {"do": {"set"}, "at": {"tomorrow"}}, {"do": {""}}, {"do": {"fire"}, "was": {"x"}}, {"do": {"to"}, "to": {"x"}},
	} {
		form := hiddenForm(s.get(deadlineURL("/", "q", 7)).body)
		for name, value := range bad {
			form[name] = value
		}
		form.Set("confirmed", "1")
		require.Equal(t, http.StatusBadRequest, s.post("/deadline", form).status, "%v", bad)
	}
	require.Empty(t, s.broker.changes)

	s.broker.lost = true
	form := hiddenForm(s.get(deadlineURL("/", "q", 7)).body)
	form.Set("do", "fire")
	form.Set("confirmed", "1")
	a := s.post("/deadline", form)
	require.Equal(t, http.StatusNotFound, a.status)
	require.Contains(t, a.body, "look again")
}
