package ui

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBody(t *testing.T) {
	for _, c := range []struct {
		body, want  string
		cut, dumped bool
	}{
		{"plain\ttext\n", "plain\ttext\n", false, false},
		{"", "", false, false},
		{"caf\xc3", "caf", true, false},
		{"caf\xc3", "63 61 66 c3", false, true},
		{"a\x00b", "61 00 62", false, true},
		{"a\u202eb", "61 e2 80 ae 62", false, true},
	} {
		text, dumped := Body([]byte(c.body), c.cut)
		require.Equal(t, c.dumped, dumped, "%q", c.body)
		require.Contains(t, text, c.want)
	}
}
