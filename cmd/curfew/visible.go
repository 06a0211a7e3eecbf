package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible is text of strangers (names, message-ids, what a server says) fit for a terminal: what is no
// printable character stands there as an escape, so that nothing in it moves the cursor, sets the
// title or breaks a line. Characters of keep stay.
func visible(text, keep string) string {
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
