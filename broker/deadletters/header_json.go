package deadletters

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"

	"curfew/broker/amqp"
	"curfew/broker/policy"
)

// typed is a field value in JSON. Types that JSON has are plain: a longstr, a bool, a long, a double with a point or an exponent, void as null. Any
// other value is written with RabbitMQ's name of its type (amqp.TypeName): {"signedint": 5}. A longstr that is not UTF-8 is {"longstr_base64": "..."}.
type typed struct{ value any }

const longstrCoded = "longstr_base64"

// typedTable returns false if a name in the table is not UTF-8, which JSON cannot express.
func typedTable(t amqp.Table) (map[string]typed, bool) {
	m := make(map[string]typed, len(t))
	for name, v := range t {
		if !utf8.ValidString(name) || !nameable(v) {
			return nil, false
		}
		m[name] = typed{v}
	}
	return m, true
}

// nameable reports whether the names of the tables in v are UTF-8.
func nameable(v any) bool {
	switch v := v.(type) {
	case amqp.Table:
		_, ok := typedTable(v)
		return ok
	case []any:
		for _, one := range v {
			if !nameable(one) {
				return false
			}
		}
	}
	return true
}

func (t typed) MarshalJSON() ([]byte, error) {
	name, v := amqp.TypeName(t.value), t.value
	switch x := t.value.(type) {
	case bool, int64, nil:
		return json.Marshal(x)
	case string:
		if utf8.ValidString(x) {
			return policy.FormatJSON(x, "")
		}
		name, v = longstrCoded, []byte(x)
	case float32:
		v = number(float64(x), 32)
	case float64:
		if text, ok := number(x, 64).(json.RawMessage); ok && bytes.ContainsAny(text, ".e") {
			return text, nil
		}
		v = number(x, 64)
	case amqp.Decimal:
		v = [2]int64{int64(x.Scale), int64(x.Value)}
	case amqp.Table:
		v, _ = typedTable(x)
	case []any:
		list := make([]typed, len(x))
		for i := range x {
			list[i] = typed{x[i]}
		}
		v = list
	}
	return policy.FormatJSON(map[string]any{name: v}, "")
}

// number returns a float as JSON, or as text if JSON has no such number.
func number(f float64, bits int) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, bits)
	}
	return json.RawMessage(strconv.FormatFloat(f, 'g', -1, bits))
}

// UnmarshalJSON accepts plain values and values with a type.
func (t *typed) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '"':
		return t.read("longstr", b)
	case 't', 'f':
		return t.read("bool", b)
	case 'n':
		return t.read("void", b)
	case '[':
		return t.read("array", b)
	case '{':
	default:
		if bytes.ContainsAny(b, ".eE") {
			return t.read("double", b)
		}
		return t.read("long", b)
	}
	var one map[string]json.RawMessage
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	for name, raw := range one {
		if len(one) == 1 {
			return t.read(name, raw)
		}
	}
	return errors.New(`a header has to be a text, a number, true, false, null or {"type": value}, such as {"signedint": 5}`)
}

// scalars are the types that encoding/json reads by itself, by their names.
var scalars = map[string]reflect.Type{}

func init() {
	for _, v := range []any{true, int8(0), uint8(0), int16(0), uint16(0), int32(0), uint32(0), int64(0), "", []byte{}, amqp.Timestamp(0)} {
		scalars[amqp.TypeName(v)] = reflect.TypeOf(v)
	}
}

func (t *typed) read(name string, raw json.RawMessage) (err error) {
	if of := scalars[name]; of != nil {
		v := reflect.New(of)
		err = json.Unmarshal(raw, v.Interface())
		t.value = v.Elem().Interface()
		return err
	}
	switch name {
	case "float":
		f, bad := float(raw, 32)
		t.value, err = float32(f), bad
	case "double":
		t.value, err = float(raw, 64)
	case "decimal":
		var d [2]int64
		err = json.Unmarshal(raw, &d)
		t.value = amqp.Decimal{Scale: uint8(d[0]), Value: int32(d[1])}
	case longstrCoded:
		var b []byte
		err = json.Unmarshal(raw, &b)
		t.value = string(b)
	case "void":
		t.value = nil
	case "table":
		var m map[string]typed
		if err = json.Unmarshal(raw, &m); err == nil {
			t.value, err = plainTable(m)
		}
	case "array":
		var list []typed
		err = json.Unmarshal(raw, &list)
		values := make([]any, len(list))
		for i := range list {
			values[i] = list[i].value
		}
		t.value = values
	default:
		err = fmt.Errorf("unknown header type %q", name)
	}
	return err
}

func float(raw json.RawMessage, bits int) (float64, error) {
	text := string(raw)
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	}
	return strconv.ParseFloat(text, bits)
}

// plainTable is the reverse of typedTable.
func plainTable(m map[string]typed) (amqp.Table, error) {
	t := make(amqp.Table, len(m))
	for name, v := range m {
		if len(name) > 255 {
			return nil, errors.New("a header's name is longer than 255 bytes")
		}
		t[name] = v.value
	}
	return t, nil
}

// plainNumbers turns all integers into longs, so that a person reads them as plain numbers. withTypes is the reverse.
func plainNumbers(t amqp.Table) amqp.Table {
	plain := make(amqp.Table, len(t))
	for name, v := range t {
		if n, ok := amqp.Integer(v); ok {
			v = n
		}
		plain[name] = v
	}
	return plain
}

// withTypes gives each long the type of the integer with the same name in like, if it fits.
func withTypes(t, like amqp.Table) {
	for name, v := range t {
		n, isLong := v.(int64)
		if _, was := amqp.Integer(like[name]); isLong && was {
			v := reflect.ValueOf(n).Convert(reflect.TypeOf(like[name])).Interface()
			if back, _ := amqp.Integer(v); back == n {
				t[name] = v
			}
		}
	}
}
