package ui

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamesThatNobodyCanType are confirmed as the page shows them.
func TestNamesThatNobodyCanType(t *testing.T) {
	for _, name := range []string{"orders", " a", "a ", "a\u200bb", "a\nb"} {
		require.True(t, NewForm(url.Values{"confirm": {name}}).Confirmed(name), "%q", name)
		require.True(t, NewForm(url.Values{"confirm": {Visible(name)}}).Confirmed(name), "%q", name)
		require.False(t, NewForm(url.Values{"confirm": {name + "x"}}).Confirmed(name), "%q", name)
		require.False(t, NewForm(nil).Confirmed(name), "%q", name)
	}
}

// TestNumbers: what is wrong with one is said.
func TestNumbers(t *testing.T) {
	for text, wrong := range map[string]string{
		"0": "", " 7 ": "", "9223372036854775807": "", "9223372036854775808": "9223372036854775808 is too large.", "-1": `"-1" is not a whole number of 0 or more.`,
		"-9223372036854775809": `"-9223372036854775809" is not a whole number of 0 or more.`, "1e3": `"1e3" is not a whole number of 0 or more.`,
	} {
		f := NewForm(url.Values{"n": {text}})
		_, given := f.Integer("n")
		require.True(t, given)
		require.Equal(t, wrong, f.problems["n"], text)
	}
}
