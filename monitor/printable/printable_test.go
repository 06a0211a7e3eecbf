package printable

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"orders.dead ü 日本 -":       "orders.dead ü 日本 -",
		"\x1b[2J\x1b]0;title\a":    `\x1b[2J\x1b]0;title\a`,
		"a\tb\r\nc":                `a\tb\r\nc`,
		"\u009b31m\u202eabc\u2028": `\u009b31m\u202eabc\u2028`,
		"\xff\xfe":                 `\xff\xfe`,
		`a\b "c"`:                  `a\b "c"`,
	} {
		assert.Equal(t, want, Text(text, ""))
	}
	assert.Equal(t, "one\n\ttwo\\x1b", Text("one\n\ttwo\x1b", "\n\t"))
}
