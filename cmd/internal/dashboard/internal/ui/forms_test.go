package ui

import (
	"math"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/operate"
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

// TestValues: what is wrong with a number, a time or an object is said, in the words that commands and the API have for it.
func TestValues(t *testing.T) {
	for _, one := range []struct {
		kind  operate.Kind
		text  string
		value any
		wrong string
	}{
		{operate.Number, "0", int64(0), ""},
		{operate.Number, " 7 ", int64(7), ""},
		{operate.Number, "", nil, ""},
		{operate.Number, "-9223372036854775808", int64(math.MinInt64), ""},
		{operate.Number, "9223372036854775808", int64(math.MaxInt64), `"9223372036854775808" is not a whole number, or is too large.`},
		{operate.Number, "1e3", int64(0), `"1e3" is not a whole number, or is too large.`},
		{operate.Fraction, "2.5", 2.5, ""},
		{operate.Fraction, "a", 0.0, `"a" is not a number.`},
		{operate.Span, "250", int64(250), ""},
		{operate.Span, "-1h30m", int64(-5_400_000), ""},
		{operate.Span, "1.5ms", int64(1), `"1.5ms" is not in whole milliseconds.`},
		{operate.Span, "soon", int64(0), `"soon" is invalid: want a duration such as 90s, 10m or 1h30m.`},
		{operate.Duration, "-1s", "-1s", `"-1s" is invalid: want a duration such as 90s, not a negative one.`},
		{operate.Instant, "2026-01-31T15:00", int64(1_769_871_600_000), ""},
		{operate.Instant, "2026-01-31T16:00:00+01:00", int64(1_769_871_600_000), ""},
		{operate.Text, "a", "a", ""},
	} {
		f := NewForm(url.Values{"n": {one.text}})
		require.Equal(t, one.value, f.Value("n", one.kind), one.text)
		require.Equal(t, one.wrong, f.problems["n"], one.text)
	}
}
