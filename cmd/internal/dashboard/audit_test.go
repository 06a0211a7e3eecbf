package dashboard

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/dashboard/internal/ui"
	"curfew/monitor/audit"
)

// TestAuditIsSearched: fields narrow the search, the files are of the same search, and names are text.
func TestAuditIsSearched(t *testing.T) {
	s := newSite(t)
	s.audited(
		audit.Record{At: 2000, Deadline: 1000, LateMillis: 1000, VHost: "/", Queue: "<b>q1</b>", MessageID: []byte("m-1"), Path: "eager", Outcome: "dead_lettered", To: []string{"dlq"}},
		audit.Record{At: 3000, Deadline: 3000, VHost: "/", Queue: "q2", MessageID: []byte("m-2"), Path: "lazy", Outcome: "dropped"},
	)
	s.logIn("eye")

	a := s.get("/audit?reason=")
	require.Contains(t, a.body, "m-1")
	require.Contains(t, a.body, "m-2")
	require.NotContains(t, a.body, "<b>q1")
	a = s.get("/audit?queue=q2")
	require.NotContains(t, a.body, "m-1")
	require.Contains(t, a.body, `href="/audit/export?format=csv&amp;queue=q2"`)
	require.Contains(t, s.get("/audit?min_lateness=500ms").body, "m-1")
	require.Contains(t, s.get("/audit?message_id=none").body, "No record matches")
	require.Equal(t, http.StatusBadRequest, s.get("/audit?min_lateness=soon").status)

	a = s.get("/audit/export?format=csv&queue=q2")
	require.Contains(t, a.header.Get("Content-Disposition"), "attachment")
	require.Contains(t, a.body, "m-2")
	require.NotContains(t, a.body, "m-1")
	s.post("/logout", nil)
	require.Equal(t, "/login", s.get("/audit/export?format=csv").path)
}

// TestAuditShowsChanges: who did what, as text, and only that if somebody asks.
func TestAuditShowsChanges(t *testing.T) {
	s := newSite(t)
	s.audited(
		audit.Record{At: 1000, Deadline: 1000, VHost: "/", Queue: "q", MessageID: []byte("m-1"), Path: "eager", Outcome: "dropped"},
		audit.Record{At: 1000, VHost: "/", Queue: "q", MessageID: []byte("m-2"), Reason: "rejected", Outcome: "dead_lettered", To: []string{"dlq"}},
		audit.Record{At: 2000, VHost: "/", Queue: "q", Reason: audit.Changed, Change: &audit.Change{Operation: "purge_queue", User: "<i>ann", Face: "api", Result: "done", Detail: "messages 3"}},
	)
	s.logIn("eye")
	all := s.get("/audit?reason=").body
	for _, text := range []string{"m-1", "m-2", "rejected", "purge queue", "&lt;i&gt;ann", "messages 3"} {
		require.Contains(t, all, text)
	}
	changes := s.get("/audit").body
	require.Contains(t, changes, `<a href="/audit?reason=expired">Expiries</a> <a href="/audit?reason=">Everything</a>`)
	require.Contains(t, changes, "purge queue")
	require.NotContains(t, changes, "m-1")
	require.NotContains(t, changes, "m-2")
	require.Contains(t, s.get("/audit?user=ben").body, "No record matches")
	require.Equal(t, http.StatusBadRequest, s.get("/audit?reason=bored").status)
}

// TestAuditSearchWasStopped: a search that took too long does not say that there is nothing.
func TestAuditSearchWasStopped(t *testing.T) {
	for _, asked := range []bool{false, true} {
		p := &auditPage{On: true, TooLong: true, Asked: asked, Form: ui.NewForm(nil)}
		var page strings.Builder
		require.NoError(t, p.draw(nil).Live.Render(&page))
		require.NotContains(t, page.String(), "Nobody has changed anything")
		require.Contains(t, page.String(), "None was found before the search was stopped.")
		require.Equal(t, !asked, strings.Contains(page.String(), `Only the newest records have been searched for changes. <a href="/audit?reason=changed">Search all records</a>`))
	}
}
