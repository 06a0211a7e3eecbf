package deadline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestObjectives(t *testing.T) {
	for text, want := range map[string]Objective{
		"none expires":              {all, 0},
		"99% consumed within 30s":   {99_00, 30},
		"99.9%  within 1m30s":       {99_90, 90},
		"50% consumed within 12h0s": {50_00, 43_200},
	} {
		got, err := ParseObjective(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := ParseObjective(got.String())
		require.NoError(t, err, got.String())
		require.Equal(t, want, again)
	}
	for _, text := range []string{"", "100% within 1s", "0% within 1s", "99 within 1s", "99% within 0s", "99% within 13h", "99% within 900ms", "99.999% within 1s", "99% consumed", "99% late within 1s", "NaN% within 1s"} {
		_, err := ParseObjective(text)
		require.ErrorContains(t, err, "99% consumed within 30s", text)
	}
	require.Empty(t, Objective{}.String())
}
