package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestACommaDoesNotMakeALineLonger(t *testing.T) {
	text := "(expired); billing-worker (user guest, 127.0.0.1) left 15 s ago, and fails: worker, 7 times in 1 min"
	for width := narrow; width < len(text); width++ {
		for line := range strings.Lines(fold(text, width)) {
			assert.LessOrEqual(t, len(strings.TrimRight(line, "\n")), width, line)
		}
	}
}
