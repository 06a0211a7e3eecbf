package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatDoesNotFitIsCounted: a screen that is too low shows the beginning.
func TestWhatDoesNotFitIsCounted(t *testing.T) {
	for lines, want := range map[int]string{
		0: "a\nb\nc\nd\n",
		4: "a\nb\nc\nd\n",
		5: "a\nb\nc\nd\n",
		3: "a\nb\n... and 2 more: make the window higher, or leave out --watch\n",
		1: "... and 4 more: make the window higher, or leave out --watch\n",
	} {
		var s screenful
		var out bytes.Buffer
		s.WriteString("a\nb\nc\nd\n")
		s.print(&out, lines)
		require.Equal(t, "\x1b[H\x1b[2J"+want, out.String(), lines)
	}
}

// TestNotesStandBelowTheScreen: what a command says besides comes after the screen has been cleared, and has its lines.
func TestNotesStandBelowTheScreen(t *testing.T) {
	var s screenful
	var terminal, notes bytes.Buffer
	s.WriteString("a\nb\nc\n")
	notes.WriteString("one\ntwo\n")
	s.show(&terminal, &terminal, &notes, 4)
	require.Equal(t, "\x1b[H\x1b[2Ja\n... and 2 more: make the window higher, or leave out --watch\none\ntwo\n", terminal.String())
}
