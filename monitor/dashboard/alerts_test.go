package dashboard

import (
	"os"
	"path/filepath"
	"testing"

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
	require.Contains(t, page, file+":2: rules[0].severity: &#34;&lt;b&gt;&#34; is not allowed")
	require.Contains(t, page, file+":3: rules[1].count")
}
