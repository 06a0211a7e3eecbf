package operate

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
)

// Wrong is what is wrong with a field of a request: in words, or as RabbitMQ's API says it, by a code and what that is about.
type Wrong struct {
	Field, Text, Code string
	About             []any
}

// Error implements error.
func (e *Wrong) Error() string {
	if e.Text != "" {
		return e.Text
	}
	text := e.Field + map[string]string{
		"not_integer": " is not a whole number", "not_boolean": " is neither true nor false", "not_string": " is not a text", "not_table": " is not a JSON object",
		"not_base64": " is not in base64", "out_of_range": " is out of range", "no_such_user": " does not exist",
	}[e.Code]
	switch {
	case e.Code == "out_of_range" && e.Field == "deadline":
		return "a deadline can be ten years ahead at most"
	case e.Code == "out_of_range":
		text += fmt.Sprintf(": %v", e.About[1])
	}
	return text
}

// OutOfRange means that a number in a request is too low or too high.
func OutOfRange(field string, value int64) error {
	return &Wrong{Field: field, Code: "out_of_range", About: []any{field, value}}
}

// wrong is a Wrong with a code.
func wrong(f *Field, code string, about ...any) error {
	return &Wrong{Field: f.Name, Code: code, About: about}
}

// Read makes a struct, whose fields have the tags of Field, of JSON values by their names. It is for requests that are not an operation's. Error: *Wrong.
func Read[T any](values map[string]any) (read T, err error) {
	of := reflect.TypeFor[T]()
	list := fieldsOf(of)
	request, err := decode(list, of, values)
	if err == nil {
		read, err = request.(T), check(list, request)
	}
	return read, err
}

// decode makes a request of JSON values by the names of its fields: numbers are int64 or float64. Texts for numbers and booleans count as these, since
// some clients send them. Error: *Wrong.
func decode(list []Field, request reflect.Type, values map[string]any) (any, error) {
	into := reflect.New(request).Elem()
	for i := range list {
		f := &list[i]
		v, given := values[f.Name]
		if v == nil && f.Default != "" {
			v, given = f.Default, true
		}
		if !given {
			continue
		}
		if err := f.set(into.FieldByIndex(f.index), v); err != nil {
			return nil, err
		}
	}
	return into.Interface(), nil
}

// ReadInto sets what to points to: the value of a field of that name, which is not an operation's. Error: *Wrong.
func ReadInto(name string, to, v any) error {
	return (&Field{Name: name}).set(reflect.ValueOf(to).Elem(), v)
}

func (f *Field) set(to reflect.Value, v any) error {
	if to.Kind() == reflect.Interface {
		if v != nil {
			to.Set(reflect.ValueOf(v))
		}
		return nil
	}
	if v == nil {
		if to.Kind() == reflect.Slice {
			to.Set(reflect.MakeSlice(to.Type(), 0, 0))
		}
		return nil
	}
	if f.Optional {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	if reads, is := to.Addr().Interface().(encoding.TextUnmarshaler); is {
		text, ok := v.(string)
		if !ok {
			return wrong(f, "not_string", f.Name)
		}
		if err := reads.UnmarshalText([]byte(text)); err != nil {
			return &Wrong{Field: f.Name, Text: f.Name + ": " + err.Error()}
		}
		return nil
	}
	if f.IsJSON() {
		raw, err := policy.FormatJSON(v, "")
		to.SetBytes(raw)
		return err
	}
	switch to.Kind() {
	case reflect.String:
		text, ok := v.(string)
		if !ok {
			return wrong(f, "not_string", f.Name)
		}
		to.SetString(text)
	case reflect.Bool:
		yes, err := f.boolean(v)
		if err != nil {
			return err
		}
		to.SetBool(yes)
	case reflect.Int, reflect.Int64:
		n, err := f.integer(v)
		if err != nil {
			return err
		}
		to.SetInt(n)
	case reflect.Uint64, reflect.Uint8:
		n, err := f.natural(v)
		if err == nil && to.OverflowUint(n) {
			err = OutOfRange(f.Name, int64(n))
		}
		if err != nil {
			return err
		}
		to.SetUint(n)
	case reflect.Float64:
		n, err := f.fraction(v)
		if err != nil {
			return err
		}
		to.SetFloat(n)
	case reflect.Slice:
		list, err := f.list(v)
		if err != nil {
			return err
		}
		to.Set(reflect.ValueOf(list))
	case reflect.Map:
		return f.table(to, v)
	default:
		panic("operate: no field can be a " + to.Kind().String())
	}
	return nil
}

func (f *Field) boolean(v any) (bool, error) {
	switch v {
	case true, "true":
		return true, nil
	case false, "false", "":
		return false, nil
	}
	return false, wrong(f, "not_boolean", v)
}

func (f *Field) integer(v any) (int64, error) {
	switch n := v.(type) {
	case int64:
		return n, nil
	case float64:
		if n == math.Trunc(n) {
			return int64(n), nil
		}
	case string:
		if n, err := strconv.ParseInt(n, 10, 64); err == nil {
			return n, nil
		}
		if f.Kind == Span {
			ms, err := f.Read(n)
			return ms.(int64), err
		}
	}
	return 0, wrong(f, "not_integer", v)
}

// natural reads a number that is not negative.
func (f *Field) natural(v any) (uint64, error) {
	if text, is := v.(string); is {
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return n, nil
		}
	}
	n, err := f.integer(v)
	if err == nil && n < 0 {
		err = OutOfRange(f.Name, n)
	}
	return uint64(n), err
}

func (f *Field) fraction(v any) (float64, error) {
	switch n := v.(type) {
	case int64:
		return float64(n), nil
	case float64:
		return n, nil
	case string:
		if n, err := strconv.ParseFloat(n, 64); err == nil {
			return n, nil
		}
	}
	return 0, &Wrong{Field: f.Name, Text: fmt.Sprintf("%s is not a number: %v", f.Name, v)}
}

// list reads a list of texts, or one text with commas.
func (f *Field) list(v any) ([]string, error) {
	list := []string{}
	switch v := v.(type) {
	case []string:
		return v, nil
	case string:
		for one := range strings.SplitSeq(v, ",") {
			if one = strings.TrimSpace(one); one != "" {
				list = append(list, one)
			}
		}
		return list, nil
	case []any:
		for _, one := range v {
			text, ok := one.(string)
			if !ok {
				return nil, wrong(f, "not_string", f.Name)
			}
			list = append(list, text)
		}
		return list, nil
	}
	return nil, wrong(f, "not_string", f.Name)
}

// table reads arguments or a JSON object. Some clients send an empty list for no arguments.
func (f *Field) table(to reflect.Value, v any) error {
	if list, is := v.([]any); is && len(list) == 0 {
		return nil
	}
	object, is := v.(map[string]any)
	if !is {
		return wrong(f, "not_table", f.Name)
	}
	if to.Type() == reflect.TypeFor[amqp.Table]() {
		t, err := TableOf(object)
		if bad, is := errors.AsType[*Wrong](err); is {
			bad.Field = f.Name
		}
		if err == nil {
			to.Set(reflect.ValueOf(t))
		}
		return err
	}
	to.Set(reflect.ValueOf(object))
	return nil
}

// check checks the bounds of a request. Error: *Wrong.
func check(list []Field, request any) error {
	for i := range list {
		f := &list[i]
		switch v := f.Of(request).(type) {
		case int64:
			if v < f.min || v > f.Max {
				return OutOfRange(f.Name, v)
			}
		case int:
			if int64(v) < f.min || int64(v) > f.Max {
				return OutOfRange(f.Name, int64(v))
			}
		case string:
			if f.Kind == Duration && (v != "" || f.Key) {
				if _, err := f.Read(v); err != nil {
					return err
				}
			}
			if len(f.OneOf) > 0 && !f.Any && f.Kind != Words && !slices.Contains(f.OneOf, v) && v != f.Default {
				return &Wrong{Field: f.Name, Text: fmt.Sprintf("%s is %q: want %s", f.Name, v, strings.Join(f.OneOf, ", "))}
			}
		}
	}
	if whole, is := request.(Checker); is {
		return whole.Check()
	}
	return nil
}

// Read reads what somebody typed for a field of this kind, and returns a JSON value. The error says what to type.
func (k Kind) Read(text string) (v any, err error) {
	v = text
	switch k {
	case Number, Shown:
		if v, err = strconv.ParseInt(text, 10, 64); err != nil {
			err = fmt.Errorf("%q is not a whole number, or is too large", text)
		}
	case Fraction:
		if v, err = strconv.ParseFloat(text, 64); err != nil {
			err = fmt.Errorf("%q is not a number", text)
		}
	case Span:
		if v, err = strconv.ParseInt(text, 10, 64); err != nil {
			var d time.Duration
			if d, err = deadline.ParseSpan(text); d%time.Millisecond != 0 {
				err = fmt.Errorf("%q is not in whole milliseconds", text)
			}
			v = d.Milliseconds()
		}
	case Duration:
		var d time.Duration
		if d, err = deadline.ParseSpan(text); d < 0 {
			err = fmt.Errorf("%q is invalid: want a duration such as 90s, not a negative one", text)
		}
	case Instant:
		return deadline.ParseMillis(text)
	case Object:
		return ParseObject(text)
	}
	return v, err
}

// Read reads what somebody typed for the field (Kind.Read). Error: *Wrong.
func (f *Field) Read(text string) (any, error) {
	v, err := f.Kind.Read(text)
	if err != nil {
		err = &Wrong{Field: f.Name, Text: f.Name + ": " + err.Error()}
	}
	return v, err
}
