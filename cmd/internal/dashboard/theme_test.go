package dashboard

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThemeIsChosen without a script or a login, kept by the browser, and nothing else is taken for one.
func TestThemeIsChosen(t *testing.T) {
	s := newSite(t)
	require.NotContains(t, s.get("/login").body, "data-theme")
	a := s.post("/theme?to=%2Flogin%3Fto%3D%252Faudit", url.Values{"theme": {"dark"}})
	require.Equal(t, "/login", a.path)
	require.Contains(t, a.body, `<html lang="en" data-theme="dark">`)
	require.Contains(t, a.body, `<button class="quiet" name="theme" value="dark" aria-pressed="true">dark</button>`)
	require.Contains(t, s.logIn("eye").get("/queues").body, `data-theme="dark"`)
	require.NotContains(t, s.post("/theme?to=%2F%2Felsewhere.example", url.Values{"theme": {"system"}}).body, "data-theme")
	require.Equal(t, http.StatusBadRequest, s.post("/theme", url.Values{"theme": {"<b>"}}).status)
}
