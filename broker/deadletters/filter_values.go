package deadletters

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"

	"curfew/broker/amqp"
)

// instant is a time as a value of a field.
func instant(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

func (l *Letter) firstKey() string {
	if keys := l.last().Keys; len(keys) > 0 {
		return keys[0]
	}
	return ""
}

func (l *Letter) deaths() any {
	list := make([]any, len(l.Deaths))
	for i := range l.Deaths {
		d := &l.Deaths[i]
		list[i] = map[string]any{"reason": d.Reason, "queue": d.Queue, "exchange": d.Exchange, "routing_keys": d.Keys, "count": int(d.Count), "time": instant(d.Time)}
	}
	return list
}

// unpacked is the body without its content encoding.
func (l *Letter) unpacked() []byte {
	body, _, err := Unpack(l.Properties.ContentEncoding, l.Message.Body, maxFiltered)
	if err != nil && len(body) == 0 {
		return l.Message.Body
	}
	return body
}

// json is the body as a value; nil: it is not JSON.
func (l *Letter) json() any {
	body := l.unpacked()
	if len(body) > maxJSON {
		return nil
	}
	tokens := json.NewDecoder(bytes.NewReader(body))
	tokens.UseNumber()
	var v any
	if tokens.Decode(&v) != nil || tokens.More() {
		return nil
	}
	return plain(v)
}

// plain makes a value of a header, or one from JSON, a value of an expression: integers are int, other numbers float64, timestamps time.Time.
func plain(v any) any {
	switch v := v.(type) {
	case amqp.Table:
		m := make(map[string]any, len(v))
		for name, one := range v {
			m[name] = plain(one)
		}
		return m
	case map[string]any:
		for name, one := range v {
			v[name] = plain(one)
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n
		}
		n, _ := v.Float64() // too large a number is infinite
		return n
	case amqp.Timestamp:
		if v == 0 {
			return nil
		}
		return time.UnixMilli(instantOf(v)).UTC()
	case amqp.Decimal:
		n, _ := strconv.ParseFloat(fmt.Sprintf("%de-%d", v.Value, v.Scale), 64)
		return n
	case float32:
		return float64(v)
	case []byte:
		return string(v)
	}
	if n, ok := amqp.Integer(v); ok {
		return int(n)
	}
	return v
}

// clockType is the type of instants.
var clockType = reflect.TypeFor[time.Time]()

// unknown reports whether the type of a part of an expression is known only for each message.
func unknown(n ast.Node) bool { return n.Type().Kind() == reflect.Interface }

// The functions of filters. Their result is nil for a value that they are not for.

func length(v any) any {
	switch v := reflect.ValueOf(v); v.Kind() {
	case reflect.String:
		return utf8.RuneCountInString(v.String())
	case reflect.Slice, reflect.Map:
		return v.Len()
	}
	return nil
}

// ofText is a function of text.
func ofText(of func(string) string) func(any) any {
	return func(v any) any {
		if s, ok := v.(string); ok {
			return of(s)
		}
		return nil
	}
}

func textOf(v any) any {
	if v == nil {
		return nil
	}
	return fmt.Sprint(v)
}

func numberOf(v any) any {
	if s, ok := v.(string); ok {
		v = json.Number(s)
	}
	switch v := plain(v).(type) {
	case int, float64:
		return v
	}
	return nil
}

// elements are those of a list; another value has none.
func elements(v any) any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{}
}

// member is a member of a table or an element of a list; nil: there is none.
func member(of, name any) any {
	switch of := of.(type) {
	case map[string]any:
		if s, ok := name.(string); ok {
			return of[s]
		}
	case []any:
		if i, ok := name.(int); ok && i >= -len(of) && i < len(of) {
			return of[(i+len(of))%len(of)]
		}
	}
	return nil
}

// comparisons are the operators that a value may not be fit for.
var comparisons = map[string]func(a, b any) bool{
	"<": runtime.Less, "<=": runtime.LessOrEqual, ">": runtime.More, ">=": runtime.MoreOrEqual,
	"in":         runtime.In,
	"contains":   func(a, b any) bool { return strings.Contains(a.(string), b.(string)) },
	"startsWith": func(a, b any) bool { return strings.HasPrefix(a.(string), b.(string)) },
	"endsWith":   func(a, b any) bool { return strings.HasSuffix(a.(string), b.(string)) },
	"matches":    func(a, b any) bool { return b.(*regexp.Regexp).MatchString(a.(string)) },
}

// compare compares two values. False: they cannot be compared.
func compare(operator string, a, b any) (is bool) {
	defer func() {
		if recover() != nil { // runtime panics for values of other kinds
			is = false
		}
	}()
	return comparisons[operator](a, b)
}

// escaped returns the forms of a text in JSON that is limited to ASCII, as Python writes it; none: it is in ASCII.
func escaped(text string) (forms []string) {
	if !utf8.ValidString(text) || strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return nil
	}
	for _, format := range []string{`\u%04x`, `\u%04X`} {
		var b []byte
		for _, r := range text {
			if r < utf8.RuneSelf {
				b = append(b, byte(r))
				continue
			}
			for _, unit := range utf16.Encode([]rune{r}) {
				b = fmt.Appendf(b, format, unit)
			}
		}
		forms = append(forms, string(b))
	}
	return forms
}
