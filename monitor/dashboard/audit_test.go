package dashboard

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

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

	a := s.get("/audit")
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
