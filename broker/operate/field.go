package operate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"curfew/broker/policy"
)

// Kind is what a field has.
type Kind string

// The kinds. The tag "is" sets one; otherwise it follows from the type of the field.
const (
	Text     Kind = "text"
	Number   Kind = "number"
	Flag     Kind = "flag"       // a bool
	List     Kind = "list"       // of texts
	Object   Kind = "object"     // of JSON
	Password Kind = "password"   // a text that is never shown
	Pattern  Kind = "pattern"    // a regular expression
	JSON     Kind = "json"       // any JSON value
	Span     Kind = "span"       // a number of ms, or a text such as 90s or 10m
	Words    Kind = "words"      // a text for which there are proposals (oneof)
	Fraction Kind = "fraction"   // a number that need not be whole
	Instant  Kind = "instant"    // a time.Time, or Unix ms; 0 is none
	Progress Kind = "state"      // running, done, cancelled or failed
	Share    Kind = "share"      // how much is done, of 100; below 0: it is not known
	Duration Kind = "duration"   // a text such as 90s or 1h30m
	Filter   Kind = "filter"     // deadletters.Filter: it may stand in the body and in the query
	Ago      Kind = "ago"        // an Instant that is shown as how long ago it was
	Elapsed  Kind = "elapsed"    // a time.Duration; 0 is none
	Bytes    Kind = "bytes"      // a number of bytes
	Bad      Kind = "bad"        // a number of what should not be
	PerTime  Kind = "rate"       // a Rate
	Content  Kind = "body"       // a Body
	Features Kind = "properties" // Properties of a message
	Confirm  Kind = "confirm"    // how many messages are to be deleted; as a flag with the position up to which they were counted
	Shown    Kind = "shown"      // how many bytes are shown of each body; a command that prints JSON shows all
	Lines    Kind = "lines"      // a text of several lines
	Traffic  Kind = "flow"       // whether a connection is held up, in RabbitMQ's words
)

// Field is a field of a request, or a column of a result. One that is a pointer is optional: nil means that it was not given, and a form gives it only if
// its user has changed it. Its tags are:
//
//	json     its name in JSON, paths, queries and flags; "-": only pages have it, if it has a label
//	form     its name in forms and the queries of pages; the same if it is missing
//	label    its name for people; made of the name if it is missing
//	doc      what it means
//	is       its kind
//	need     key: requests have to have it; page: forms must not leave it empty; value: both
//	default  the value if it is missing
//	start    the value that an empty form has
//	oneof    its possible values, with spaces between; of a list: those that are known
//	texts    what a page says for each of these, with | between; it does not offer those without a text
//	min max  its bounds
//	log      its name in records; "": it is not recorded
//	hide     the faces that do not have it, with spaces between: api, command, page, table, and list, a page with more than one row
//	table    its heading in tables of commands, with the marks of cli.Printer; its name if it is missing
//	until    of an instant: heading of a column with how long it is until then
//	flag     its name as a flag, and behind a comma a letter; its name with dashes, without x-, if it is missing
//	help     what it means as a flag; doc if it is missing
//	own      only routes below /api/curfew have it, in the query
//	empty    what an empty field of a form stands for; the same as nothing if it is missing
//	to       of a column: path of the page that its value links to, with {column} for values of the row
//	button   text of a button of the form that sets it
//	eg       an example of it, for the command's example
//	faint    what a page shows for nothing
//	any      values other than those of oneof are possible, and the broker checks them
//	more     in a form it is folded away, with others under this text
//	seen     a form has it hidden, as it is in the row that the form is about
type Field struct {
	Name, Form, Label           string
	Doc, Help                   string
	Kind                        Kind
	Key, Filled                 bool // need
	Default, Start, Log, Button string
	Faint, Eg, Heading, Flag    string
	Until                       string
	OneOf, Texts                []string
	Any                         bool
	More                        string
	Seen                        bool
	Own, Omit                   bool // Omit: it is left out where it has nothing
	quoted                      bool // a number that JSON has as a string
	Optional                    bool // it is a pointer
	Empty, To                   string
	min, Max                    int64
	hidden                      []string
	index                       []int
	of                          reflect.Type
}

// itemsOf is the list in a result that has one beside other things: its field "items".
func itemsOf(result reflect.Type) (index []int, is bool) {
	if result.Kind() != reflect.Struct {
		return nil, false
	}
	items, is := result.FieldByName("Items")
	return items.Index, is && items.Type.Kind() == reflect.Slice
}

// rowTypeOf is the struct that a result has its columns of; nil: it has none.
func rowTypeOf(result reflect.Type) reflect.Type {
	for {
		if index, is := itemsOf(result); is {
			result = result.FieldByIndex(index).Type
		}
		if result.Kind() != reflect.Slice && result.Kind() != reflect.Pointer {
			return result
		}
		result = result.Elem()
	}
}

// fieldsOf reads the fields of a struct, those of embedded structs in their place.
func fieldsOf(of reflect.Type) (list []Field) {
	if of.Kind() != reflect.Struct {
		return nil
	}
	for _, sf := range reflect.VisibleFields(of) {
		name, option, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if sf.Anonymous || name == "" || name == "-" && sf.Tag.Get("label") == "" {
			continue
		}
		hide := sf.Tag.Get("hide")
		if name == "-" {
			name, hide = strings.ToLower(sf.Name), hide+" api command table"
		}
		f := Field{
			Name: name, Form: sf.Tag.Get("form"), Label: sf.Tag.Get("label"), Doc: sf.Tag.Get("doc"), Help: sf.Tag.Get("help"), Kind: Kind(sf.Tag.Get("is")), Default: sf.Tag.Get("default"),
			Start: sf.Tag.Get("start"), Log: sf.Tag.Get("log"), Button: sf.Tag.Get("button"), Faint: sf.Tag.Get("faint"), Eg: sf.Tag.Get("eg"), Empty: sf.Tag.Get("empty"), To: sf.Tag.Get("to"), More: sf.Tag.Get("more"),
			OneOf: append([]string(nil), strings.Fields(sf.Tag.Get("oneof"))...), Texts: strings.Split(sf.Tag.Get("texts"), "|"),
			Heading: sf.Tag.Get("table"), Flag: sf.Tag.Get("flag"), Until: sf.Tag.Get("until"), hidden: strings.Fields(hide), Omit: option == "omitempty" || option == "omitzero", quoted: option == "string", index: sf.Index, of: sf.Type, min: math.MinInt64, Max: math.MaxInt64,
		}
		need := sf.Tag.Get("need")
		f.Key, f.Filled = need == "key" || need == "value", need == "page" || need == "value"
		_, f.Own = sf.Tag.Lookup("own")
		_, f.Any = sf.Tag.Lookup("any")
		_, f.Seen = sf.Tag.Lookup("seen")
		if _, omit := sf.Tag.Lookup("omit"); omit {
			f.Omit = true
		}
		f.Optional = sf.Type.Kind() == reflect.Pointer
		f.Form = cmp.Or(f.Form, name)
		f.Label, f.Kind = cmp.Or(f.Label, labelOf(name)), cmp.Or(f.Kind, kindOf(sf.Type))
		f.Heading, f.Flag = cmp.Or(f.Heading, strings.ToUpper(spaces.Replace(name))), cmp.Or(f.Flag, strings.ReplaceAll(strings.TrimPrefix(name, "x-"), "_", "-"))
		f.Help = cmp.Or(f.Help, f.Doc)
		for tag, to := range map[string]*int64{"min": &f.min, "max": &f.Max} {
			if text := sf.Tag.Get(tag); text != "" {
				n, err := strconv.ParseInt(text, 10, 64)
				if err != nil {
					panic("operate: " + of.Name() + "." + sf.Name + ": " + err.Error())
				}
				*to = n
			}
		}
		list = append(list, f)
	}
	return list
}

// spaces puts spaces between the words of a name.
var spaces = strings.NewReplacer("-", " ", "_", " ")

func labelOf(name string) string {
	text := spaces.Replace(name)
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

func kindOf(of reflect.Type) Kind {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of.Kind() {
	case reflect.Float64:
		return Fraction
	case reflect.Struct:
		if of == reflect.TypeFor[time.Time]() {
			return Instant
		}
	case reflect.Bool:
		return Flag
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return Number
	case reflect.Slice:
		return List
	case reflect.Map:
		return Object
	}
	return Text
}

// IsJSON reports whether the field has JSON as it was written, with its numbers.
func (f *Field) IsJSON() bool { return f.of == reflect.TypeFor[json.RawMessage]() }

// On reports whether a face has the field: "api", "command", "page", "list" or "table".
func (f *Field) On(face string) bool { return !slices.Contains(f.hidden, face) }

// Of is the field's value in a request or a row; nil: it is optional and not given.
func (f *Field) Of(row any) any {
	v := reflect.ValueOf(row)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	v = v.FieldByIndex(f.index)
	if f.Optional {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	return v.Interface()
}

// has reports whether the field has something in a row; of one that is optional, whether it was given.
func (f *Field) has(row any) bool {
	v := reflect.ValueOf(f.Of(row))
	return v.IsValid() && (f.Optional || !v.IsZero())
}

// Shown are the columns that a face shows for some rows: without those that are left out where they have nothing.
func (op *Op) Shown(face string, rows []any) (list []Field) {
	for _, f := range op.Columns {
		if f.On(face) && !(f.Omit && !slices.ContainsFunc(rows, f.has)) {
			list = append(list, f)
		}
	}
	return list
}

// Rows are the rows of a result: of a list its entries, otherwise the result itself; none of a result that is nothing.
func Rows(result any) (rows []any) {
	v := reflect.ValueOf(result)
	if v.IsValid() {
		if index, is := itemsOf(v.Type()); is {
			v = v.FieldByIndex(index)
		}
	}
	switch {
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			rows = append(rows, v.Index(i).Interface())
		}
	case !v.IsValid(), v.Kind() == reflect.Pointer && v.IsNil(), v.Kind() == reflect.Struct && v.NumField() == 0:
	default:
		rows = []any{result}
	}
	return rows
}

// Object is a row as a JSON object of a face.
func (op *Op) Object(face string, row any) map[string]any {
	o := map[string]any{}
	for _, f := range op.Shown(face, []any{row}) {
		value := f.Of(row)
		switch v := reflect.ValueOf(value); {
		case f.quoted:
			value = fmt.Sprint(value)
		case v.Kind() == reflect.Slice && v.IsNil():
			value = []any{}
		case v.Kind() == reflect.Map && v.IsNil():
			value = map[string]any{}
		}
		o[f.Name] = value
	}
	return o
}

// Plain is a value of a request or a row as text: lists with commas, objects as JSON in which <, > and & are as they were typed.
func Plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []string:
		return strings.Join(v, ",")
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return v.UTC().Format(time.RFC3339)
	case fmt.Stringer:
		return v.String()
	case bool:
		if v {
			return "yes"
		}
		return ""
	}
	switch of := reflect.ValueOf(v); {
	case of.Kind() == reflect.Map && of.Len() == 0:
		return "{}"
	case of.Kind() == reflect.Map, of.Type() == reflect.TypeFor[[]any]():
		text, _ := policy.FormatJSON(v, "") // it never fails for values that came from JSON
		return string(text)
	}
	return fmt.Sprint(v)
}
