package printable

import (
	"strings"

	"github.com/dustin/go-humanize"
)

// Shell quotes a name for a shell.
func Shell(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-%", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Number has separators: 1,200.
func Number(n int64) string { return humanize.Comma(n) }

// Plural is a number with its thing: 1 message, 1,200 messages.
func Plural(n int64, thing string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(thing, "y"):
		thing = thing[:len(thing)-1] + "ies"
	default:
		thing += "s"
	}
	return Number(n) + " " + thing
}
