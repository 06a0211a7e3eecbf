package ui

import (
	"encoding/json"
	"regexp"
	"unicode"
	"unicode/utf8"
)

// escapes are what a backslash begins in JSON: a character of two surrogates, or of one escape, or another escape.
var escapes = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.`)

// Unescaped is the same JSON with characters in place of escapes such as \u00f6, as long as these are visible and
// not ASCII.
func Unescaped(text string) string {
	return escapes.ReplaceAllStringFunc(text, func(escape string) string {
		var s string
		if json.Unmarshal([]byte(`"`+escape+`"`), &s) != nil {
			return escape
		}
		r, _ := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError || r < utf8.RuneSelf || !unicode.IsGraphic(r) {
			return escape
		}
		return s
	})
}
