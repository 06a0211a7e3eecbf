package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestCommandsStandAlone: on lines of their own, which can be copied.
func TestCommandsStandAlone(t *testing.T) {
	lines := Lines("3 messages lost. To keep what expires: `curfew policy set keep '^a b c d e f g h i j$' --vhost /`. It repeats what is set.", 40)
	assert.Equal(t, []string{"3 messages lost. To keep what expires:", `curfew policy set keep \`, `'^a b c d e f g h i j$' --vhost /`, "It repeats what is set."}, lines)
}

func TestACommaDoesNotMakeALineLonger(t *testing.T) {
	text := "(expired); billing-worker (user guest, 127.0.0.1) left 15 s ago, and fails: worker, 7 times in 1 min"
	for width := narrow; width < len(text); width++ {
		for line := range strings.Lines(fold(text, width)) {
			assert.LessOrEqual(t, len(strings.TrimRight(line, "\n")), width, line)
		}
	}
}
