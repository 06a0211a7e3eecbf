package ui

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnescaped(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"Bj\u00f6rn"}`: `{"name":"Björn"}`, `"\ud83d\ude00"`: `"😀"`, `"\ud83d"`: `"\ud83d"`, `"\\u00f6"`: `"\\u00f6"`, `"\u0022\u000a"`: `"\u0022\u000a"`,
		`"\u202e"`: `"\u202e"`, `"\u00`: `"\u00`, `\`: `\`, `"\ud83d\u0041"`: `"\ud83d\u0041"`, "plain": "plain",
	} {
		require.Equal(t, want, Unescaped(text))
	}
}
