package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"curfew/broker/operate"
)

// PairsHelp explains how Pairs reads a value.
const PairsHelp = `name=value; may be repeated. A value that is JSON (7, true, [1], "7") is of that type, any other is text`

// Pairs reads name=value arguments of a flag.
func Pairs(flag string, pairs []string) (map[string]any, error) {
	all := map[string]any{}
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, Usagef("%s: %q is invalid: want name=value", flag, pair)
		}
		all[name] = value(text)
	}
	return all, nil
}

// value is the value of JSON text, with numbers as they are written; other text is itself.
func value(text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return text
	}
	if _, err := d.Token(); err != io.EOF {
		return text // more text follows, as in 2030-01-01
	}
	return v
}

// Text is a JSON value as text for a table.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		return OrDash(v)
	case map[string]any, []any:
		return operate.Plain(v)
	}
	return fmt.Sprint(v)
}
