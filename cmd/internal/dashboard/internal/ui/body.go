package ui

import (
	"encoding/hex"
	"unicode"
	"unicode/utf8"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"curfew/broker/operate"
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

// MessageBody shows as much of a body as was read; nothing if that is nothing.
func MessageBody(label string, body operate.Body) g.Node {
	if len(body.Start) == 0 {
		return nil
	}
	cut := len(body.Start) < body.Bytes
	text, dumped := Body(body.Start, cut)
	return g.Group{
		h.Pre(h.Class(map[bool]string{false: "text", true: "hex"}[dumped]), h.TabIndex("0"), h.Aria("label", label), g.Text(text)),
		g.If(cut, h.P(h.Class("faint"), g.Text("… the first "+Bytes(int64(len(body.Start)))+" of "+Bytes(int64(body.Bytes))))),
	}
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
