package ui

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Unescaped is the same JSON with characters in place of escapes such as \u00f6, as long as these are visible and
// not ASCII.
func Unescaped(json string) string {
	if !strings.Contains(json, `\u`) {
		return json
	}
	var b strings.Builder
	for i := 0; i < len(json); {
		if json[i] != '\\' || i+1 == len(json) {
			b.WriteByte(json[i])
			i++
			continue
		}
		r, size := escaped(json[i:])
		if r >= utf8.RuneSelf && unicode.IsGraphic(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(json[i : i+size])
		}
		i += size
	}
	return b.String()
}

// escaped is the character for the \u escape at the beginning of the text, and the escape's length; 0 if there is none.
func escaped(text string) (r rune, size int) {
	unit := func(at int) rune {
		if len(text) < at+6 || text[at] != '\\' || text[at+1] != 'u' {
			return 0
		}
		n, err := strconv.ParseUint(text[at+2:at+6], 16, 16)
		if err != nil {
			return 0
		}
		return rune(n)
	}
	r = unit(0)
	switch {
	case r == 0:
		return 0, 2
	case !utf16.IsSurrogate(r):
		return r, 6
	}
	if pair := utf16.DecodeRune(r, unit(6)); pair != unicode.ReplacementChar {
		return pair, 12
	}
	return 0, 6
}
