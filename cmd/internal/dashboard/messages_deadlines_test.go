package dashboard

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/cmd/internal/dashboard/internal/ui"
)

// TestDeadlineIsChangedOnceConfirmed: a dry run shows what the change would do, and it is done when confirmed.
func TestDeadlineIsChangedOnceConfirmed(t *testing.T) {
	for _, c := range []struct {
		form  url.Values
		asks  string
		wants int64 // the deadline; 0 none, <0 it is gone
	}{
		{url.Values{"by": {"10m"}}, "The message gets the deadline 1970-01-01 00:26:40.000 UTC.", 1_600_000},
		{url.Values{"by": {"1999"}}, "1970-01-01 00:16:41.999 UTC.", 1_001_999},
		{url.Values{"by": {"100s"}, "earlier": {"1"}}, "the message expires at once", -1},
		{url.Values{"by": {"24h"}, "earlier": {"1"}}, "the message expires at once", -1},
		{url.Values{"at": {"1970-01-02T00:00:00"}}, "1970-01-02 00:00:00.000 UTC.", 86_400_000},
		{url.Values{"cancel": {"1"}}, "The message has no deadline then", 0},
		{url.Values{"fire": {"1"}}, "The message expires now.", -1},
		{url.Values{"fire": {"1"}, "drop": {"1"}}, "The message is dropped now.", -1},
	} {
		s, q := deadlineSite(t)
		page := s.get(ui.MessageURL("/deadline", "/", "q", 1)).body
		require.Equal(t, 2, strings.Count(page, `href="/queue?name=q&amp;vhost=%2F"`), "the way back, and Cancel")
		form := hiddenForm(page)
		for name, value := range c.form {
			form[name] = value
		}
		a := s.post("/deadline", form)
		require.Equal(t, http.StatusOK, a.status)
		require.Contains(t, a.body, c.asks)
		require.EqualValues(t, 1_000_000_000, s.standing(q)[0].Deadline, "nothing is done yet")
		form.Set("do", "set")
		a = s.post("/deadline", form)
		require.Equal(t, "/queue", a.path)
		if c.wants < 0 {
			require.Contains(t, a.body, "has expired")
			require.Empty(t, s.standing(q))
			continue
		}
		require.Contains(t, a.body, "has its new deadline")
		require.Equal(t, c.wants, s.standing(q)[0].Deadline.UnixMilli())
	}
}

// deadlineSite has a queue with one message, whose deadline is 1,000,000, and an administrator looks at it.
func deadlineSite(t *testing.T) (*site, *broker.Queue) {
	s := newSite(t)
	q := s.queue("/", "q", nil)
	s.publish(q, amqp.Properties{Expiration: "100000", Has: amqp.HasExpiration}, "")
	return s.logIn("root"), q
}

// hiddenForm is the form of a page as it is sent when nothing is filled in.
func hiddenForm(page string) url.Values {
	form := url.Values{}
	for _, field := range hiddenFields(page) {
		form.Set(field[0], field[1])
	}
	return form
}

func TestDeadlinesAreOfferedToThoseWhoMayChangeThem(t *testing.T) {
	s, q := deadlineSite(t)
	require.Contains(t, s.get("/queue?vhost=/&name=q").body, fmt.Sprintf(`href="/deadline?name=q&amp;seq=1&amp;vhost=%%2F&amp;queue=%d"`, q.ID))
	require.Equal(t, http.StatusNotFound, s.get("/deadline?vhost=/&name=q&seq=8").status)
	page := s.get("/deadline?vhost=/&name=q&seq=x")
	require.Equal(t, http.StatusNotFound, page.status)
	require.Contains(t, page.body, "no longer exists")

	s.logIn("eye")
	require.NotContains(t, s.get("/queue?vhost=/&name=q").body, "/deadline")
	require.Equal(t, http.StatusForbidden, s.get(ui.MessageURL("/deadline", "/", "q", 1)).status)
	form := url.Values{
		"token": {s.ownToken()}, "vhost": {"/"}, "name": {"q"}, "seq": {"1"}, "queue": {fmt.Sprint(q.ID)}, "fire": {"1"}, "do": {"set"},
	}
	require.Equal(t, http.StatusForbidden, s.post("/deadline", form).status)
	s.permit("eye", "/", ".*", "")
	shown := s.get(ui.MessageURL("/deadline", "/", "q", 1))
	require.Equal(t, http.StatusOK, shown.status)
	require.Contains(t, shown.body, "may look at it, and may not change it")
	require.NotContains(t, shown.body, `action="/deadline"`)
	require.Equal(t, http.StatusForbidden, s.post("/deadline", form).status)
	s.logIn("root")
	require.Equal(t, http.StatusForbidden, s.post("/deadline", form).status, "another session's token")
	require.Len(t, s.standing(q), 1)

	s.logIn("eye")
	s.permit("eye", "/", ".*", ".*")
	require.Contains(t, s.get("/queue?vhost=/&name=q").body, "/deadline?", "no administrator is needed")
	form = hiddenForm(s.get(ui.MessageURL("/deadline", "/", "q", 1)).body)
	form.Set("fire", "1")
	form.Set("do", "set")
	require.Equal(t, http.StatusOK, s.post("/deadline", form).status)
	require.Empty(t, s.standing(q))
}

func TestBadDeadlinesAreRefused(t *testing.T) {
	s, q := deadlineSite(t)
	seen := hiddenForm(s.get(ui.MessageURL("/deadline", "/", "q", 1)).body)
	for _, bad := range []url.Values{
		{"by": {"soon"}}, {"by": {"1999us"}}, {"by": {"999999999999999999"}}, {"at": {"tomorrow"}}, {"at": {"9999-01-01T00:00"}}, {}, {"fire": {"1"}, "deadline": {"x"}}, {"fire": {"1"}, "by": {"1m"}}, {"drop": {"1"}},
	} {
		form := hiddenForm(s.get(ui.MessageURL("/deadline", "/", "q", 1)).body)
		for name, value := range bad {
			form[name] = value
		}
		form.Set("do", "set")
		require.Equal(t, http.StatusBadRequest, s.post("/deadline", form).status, "%v", bad)
	}
	x := s.standing(q)[0]
	require.EqualValues(t, 1_000_000_000, x.Deadline)

	s.b.Reschedule(q.Messages.Ref(&x), 2_000_000_000)
	seen.Set("fire", "1")
	seen.Set("do", "set")
	a := s.post("/deadline", seen)
	require.Equal(t, http.StatusNotFound, a.status)
	require.Contains(t, a.body, "the message has left or changed since then")
	require.Len(t, s.standing(q), 1)
}

// TestAnotherQueueOfTheName: the number of a message in a queue that was deleted is not that of one in its successor.
func TestAnotherQueueOfTheName(t *testing.T) {
	s, q := deadlineSite(t)
	address := ui.DeadlineURL("/", "q", q.ID, 1)
	seen := hiddenForm(s.get(address).body)
	seen.Set("fire", "1")
	plan := maps.Clone(seen)
	plan.Set("do", "set")
	_, err := q.VHost().Queues.Delete(nil, "q", broker.QueueDeletion{})
	require.NoError(t, err)
	again := s.queue("/", "q", nil)
	s.publish(again, amqp.Properties{Expiration: "100000", Has: amqp.HasExpiration}, "")
	require.Equal(t, http.StatusNotFound, s.get(address).status)
	for _, form := range []url.Values{seen, plan} {
		a := s.post("/deadline", form)
		require.Equal(t, http.StatusNotFound, a.status)
		require.Contains(t, a.body, "Reload the page")
		form.Del("queue")
		require.Equal(t, http.StatusBadRequest, s.post("/deadline", form).status)
	}
	require.Len(t, s.standing(again), 1)
}
