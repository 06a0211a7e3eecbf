package ui

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/monitor/dashboard/internal/format"
)

// TestNamesThatNobodyCanType are confirmed as the page shows them.
func TestNamesThatNobodyCanType(t *testing.T) {
	for _, name := range []string{"orders", " a", "a ", "a\u200bb", "a\nb"} {
		require.True(t, NewForm(url.Values{"confirm": {name}}).Confirmed(name), "%q", name)
		require.True(t, NewForm(url.Values{"confirm": {format.Visible(name)}}).Confirmed(name), "%q", name)
		require.False(t, NewForm(url.Values{"confirm": {name + "x"}}).Confirmed(name), "%q", name)
		require.False(t, NewForm(nil).Confirmed(name), "%q", name)
	}
}
