package ui

import (
	"encoding/hex"
	"unicode"
	"unicode/utf8"
)

// maxDump bounds how much of a binary body is shown.
const maxDump = 256

// Body shows a body as text if it is text, and otherwise as a dump of its first bytes. A body
// that was cut may end within a character.
func Body(body []byte, cut bool) (text string, dumped bool) {
	if cut {
		body = wholeCharacters(body)
	}
	if Readable(body) {
		return string(body), false
	}
	return hex.Dump(body[:min(len(body), maxDump)]), true
}

func wholeCharacters(body []byte) []byte {
	for back := 1; back < utf8.UTFMax && back <= len(body); back++ {
		if i := len(body) - back; utf8.RuneStart(body[i]) {
			if !utf8.FullRune(body[i:]) {
				return body[:i]
			}
			break
		}
	}
	return body
}

// Readable reports whether a body is text without characters that hide or reverse parts of it.
func Readable(body []byte) bool {
	for len(body) > 0 {
		c, size := utf8.DecodeRune(body)
		if c == utf8.RuneError && size == 1 || !unicode.IsGraphic(c) && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
		body = body[size:]
	}
	return true
}
