package settings

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// variable is one variable: a field of Settings with its tags.
type variable struct {
	group   string // the heading it is listed under
	name    string // CURFEW_AMQP_ADDR
	initial string // the default, as text
	allow   string
	desc    string
	alias   string // or empty
	secret  bool
	check   func(text string) error // of checks, or nil
	field   reflect.Value
}

// variablesOf lists the variables of s in the order of its fields.
func variablesOf(s *Settings) []variable {
	v := reflect.ValueOf(s).Elem()
	var list []variable
	var group string
	for i := range v.NumField() {
		field := v.Type().Field(i)
		tag := field.Tag
		if heading, ok := tag.Lookup("group"); ok {
			group = heading
			continue
		}
		if tag.Get("ignored") != "" {
			continue
		}
		name := nameOf(field.Name)
		list = append(list, variable{
			group:   group,
			name:    name,
			initial: tag.Get("default"),
			allow:   tag.Get("allow"),
			desc:    tag.Get("desc"),
			alias:   tag.Get("alias"),
			secret:  tag.Get("secret") == "true",
			check:   checks[name],
			field:   v.Field(i),
		})
	}
	return list
}

// nameOf is the name that envconfig gives the variable of a field: the field's words with "_" between
// them, where AMQPAddr has two words. envconfig itself offers the name only to templates.
func nameOf(field string) string {
	var name strings.Builder
	letters := []rune(field)
	for i, c := range letters {
		begins := unicode.IsUpper(c) && i > 0 && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && !unicode.IsUpper(letters[i+1]))
		if begins {
			name.WriteByte('_')
		}
		name.WriteRune(unicode.ToUpper(c))
	}
	return prefix + "_" + name.String()
}

// fileName is the variable that may name a file with the value of a secret.
func (v variable) fileName() string { return v.name + "_FILE" }

// readElsewhere sets the field, a text, from its file or its alias, if that is set and the variable itself is not. The variable
// then has the other's name.
func (v *variable) readElsewhere() error {
	_, set := os.LookupEnv(v.name)
	if path := os.Getenv(v.fileName()); v.secret && path != "" {
		if set {
			return fmt.Errorf("%s and %s are both set; keep one", v.name, v.fileName())
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s: %w", v.fileName(), err)
		}
		v.field.SetString(strings.TrimRight(string(content), "\r\n"))
		v.name = v.fileName()
	} else if value, ok := os.LookupEnv(v.alias); ok && !set && v.alias != "" {
		v.field.SetString(value)
		v.name = v.alias
	}
	return nil
}

// valid checks the field.
func (v variable) valid() error {
	text := fmt.Sprint(v.field)
	if !v.allowed() {
		return v.refuse(text, errValue)
	}
	if v.check != nil && (text != "" || v.initial != "") {
		if err := v.check(text); err != nil {
			return v.refuse(text, err)
		}
	}
	return nil
}

// allowed checks the field against the list or range in its allow tag.
func (v variable) allowed() bool {
	if low, high, isRange := strings.Cut(v.allow, ".."); isRange {
		n := v.field.Int()
		return v.bound(low) <= n && n <= v.bound(high)
	}
	if v.field.Kind() == reflect.String && strings.Contains(v.allow, "|") {
		return slices.Contains(strings.Split(v.allow, "|"), v.field.String())
	}
	return true
}

// bound parses one end of a range, which is written like the values of the field.
func (v variable) bound(text string) (n int64) {
	var err error
	switch v.field.Interface().(type) {
	case time.Duration:
		var d time.Duration
		d, err = time.ParseDuration(text)
		n = int64(d)
	case byteSize:
		var b byteSize
		err = b.UnmarshalText([]byte(text))
		n = int64(b)
	default:
		n, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		panic(fmt.Sprintf("%s: allow tag: %v", v.name, err))
	}
	return n
}

// refuse is the error for an invalid value. It names what is valid and never shows a secret. The cause is errValue, or is shown.
func (v variable) refuse(value string, cause error) error {
	what := strconv.Quote(value)
	if v.secret {
		what = "the value (a secret, not shown)"
	}
	if errors.Is(cause, errValue) {
		return fmt.Errorf("%s: %s is invalid: want %s", v.name, what, v.takes())
	}
	return fmt.Errorf("%s: %s is invalid: %w; want %s", v.name, what, cause, v.takes())
}

// takes is the allow tag in words.
func (v variable) takes() string {
	if low, high, isRange := strings.Cut(v.allow, ".."); isRange {
		return low + " to " + high
	}
	return strings.ReplaceAll(v.allow, "|", " or ")
}

// displayValue is the present value as it may be printed.
func (v variable) displayValue() string {
	value := fmt.Sprint(v.field)
	switch field := v.field.Interface().(type) {
	case interface{ Redacted() string }:
		return field.Redacted()
	case time.Duration:
		return field.String()
	}
	if v.secret && value != "" {
		return "********"
	}
	return value
}
