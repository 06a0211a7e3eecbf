// Package printable makes text from strangers (names, message-ids, what a server says) safe to show on a terminal and on
// a page. It also writes durations for people.
package printable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text replaces each character of text that is not printable with an escape, so that nothing in it moves a cursor, sets a
// title, hides, reverses or breaks a line. Characters in keep stay.
func Text(text, keep string) string {
	var b strings.Builder
	for at, r := range text {
		_, size := utf8.DecodeRuneInString(text[at:])
		part := text[at : at+size]
		if unicode.IsPrint(r) && (r != utf8.RuneError || size > 1) || strings.ContainsRune(keep, r) {
			b.WriteString(part)
			continue
		}
		quoted := strconv.QuoteToASCII(part)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}
