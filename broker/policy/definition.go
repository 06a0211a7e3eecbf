package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Definition is what a policy sets: values as JSON has them, integers as int64.
// The definition of a Policy must not be changed.
type Definition map[string]any

// UnmarshalJSON keeps integers whole.
func (d *Definition) UnmarshalJSON(b []byte) error {
	v, err := ParseJSON(b)
	if err != nil {
		return err
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("definition must be a dictionary: %s", term(v))
	}
	*d = fields
	return nil
}

// ParseJSON reads one JSON value with integers as int64, where they fit.
func ParseJSON(b []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	return Whole(v), nil
}

// FormatJSON writes a value as JSON in which <, > and & are as they were typed, with an indent for each level; "": in one line.
func FormatJSON(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Whole returns a copy of a JSON value with int64 or float64 for each number.
func Whole(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case int:
		return int64(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = Whole(v[i])
		}
		return list
	case Definition:
		return Whole(map[string]any(v))
	case map[string]any:
		fields := make(map[string]any, len(v))
		for key := range v {
			fields[key] = Whole(v[key])
		}
		return fields
	}
	return v
}

// Integer returns the value of a key that holds an integer.
func (d Definition) Integer(key string) (int64, bool) {
	n, ok := d[key].(int64)
	return n, ok
}

// Text returns the value of a key that holds a string.
func (d Definition) Text(key string) (string, bool) {
	s, ok := d[key].(string)
	return s, ok
}

// Bool returns the value of a key that holds a boolean.
func (d Definition) Bool(key string) (value, ok bool) {
	value, ok = d[key].(bool)
	return value, ok
}

// term writes a JSON value as Erlang prints it.
func term(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		if v == "" {
			return "<<>>"
		}
		return `<<"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(v) + `">>`
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if text := strconv.FormatFloat(v, 'g', -1, 64); strings.ContainsAny(text, ".e") {
			return text
		}
		return strconv.FormatFloat(v, 'f', 1, 64)
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = term(v[i])
		}
		return "[" + strings.Join(items, ",") + "]"
	case map[string]any:
		var items []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			items = append(items, term(key)+" => "+term(v[key]))
		}
		return "#{" + strings.Join(items, ",") + "}"
	}
	return fmt.Sprint(v)
}
