package main

import (
	"encoding"
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

// setting is one variable: a field of config with its tags.
type setting struct {
	group   string // the heading it stands under
	name    string // CURFEW_AMQP_ADDR
	initial string // the default, as text
	allow   string
	desc    string
	alias   string // or empty
	secret  bool
	field   reflect.Value
}

// settingsOf lists the variables of c in the order of its fields.
func settingsOf(c *config) []setting {
	v := reflect.ValueOf(c).Elem()
	var list []setting
	var group string
	for i := range v.NumField() {
		field := v.Type().Field(i)
		tag := field.Tag
		if heading, ok := tag.Lookup("group"); ok {
			group = heading
			continue
		}
		if !v.Type().Field(i).IsExported() {
			continue
		}
		list = append(list, setting{
			group:   group,
			name:    variable(field.Name),
			initial: tag.Get("default"),
			allow:   tag.Get("allow"),
			desc:    tag.Get("desc"),
			alias:   tag.Get("alias"),
			secret:  tag.Get("secret") == "true",
			field:   v.Field(i),
		})
	}
	return list
}

// variable is what envconfig calls the field of that name: its words with "_" between them, where
// AMQPAddr has two. envconfig tells it through a template only.
func variable(field string) string {
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
func (s setting) fileName() string { return s.name + "_FILE" }

// readElsewhere sets the field from its file or its alias, if there is one and the variable itself
// is not set.
func (s setting) readElsewhere() error {
	_, set := os.LookupEnv(s.name)
	if path := os.Getenv(s.fileName()); s.secret && path != "" {
		if set {
			return fmt.Errorf("%s and %s are both set; keep one", s.name, s.fileName())
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s: %w", s.fileName(), err)
		}
		return s.assign(s.fileName(), strings.TrimRight(string(content), "\r\n"))
	}
	if value, ok := os.LookupEnv(s.alias); ok && !set && s.alias != "" {
		return s.assign(s.alias, value)
	}
	return nil
}

// assign sets the field, which is text, to a value that came from the variable named source.
func (s setting) assign(source, value string) error {
	if t, ok := s.field.Addr().Interface().(encoding.TextUnmarshaler); !ok {
		s.field.SetString(value)
	} else if err := t.UnmarshalText([]byte(value)); err != nil {
		s.name = source
		return s.refuse(value, err)
	}
	return nil
}

// allowed holds the field to a list or a range in its allow tag.
func (s setting) allowed() bool {
	if low, high, isRange := strings.Cut(s.allow, ".."); isRange {
		n := s.field.Int()
		return s.bound(low) <= n && n <= s.bound(high)
	}
	if s.field.Kind() == reflect.String && strings.Contains(s.allow, "|") {
		return slices.Contains(strings.Split(s.allow, "|"), s.field.String())
	}
	return true
}

// bound reads an end of a range, which is written as values of the field are.
func (s setting) bound(text string) (n int64) {
	var err error
	switch s.field.Interface().(type) {
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
		panic(fmt.Sprintf("%s: allow tag: %v", s.name, err))
	}
	return n
}

// refuse says that value is not allowed and what is. A secret is not repeated. cause may be nil.
func (s setting) refuse(value string, cause error) error {
	what := strconv.Quote(value)
	if s.secret {
		what = "the value (a secret, not shown)"
	}
	var why string
	if r, ok := errors.AsType[reason](cause); ok {
		why = ": " + r.Error()
	}
	return fmt.Errorf("%s: %s is not allowed%s; it takes %s", s.name, what, why, s.takes())
}

// takes is the allow tag in words.
func (s setting) takes() string {
	if low, high, isRange := strings.Cut(s.allow, ".."); isRange {
		return low + " to " + high
	}
	return strings.ReplaceAll(s.allow, "|", " or ")
}

// shown is the present value, fit to be printed.
func (s setting) shown() string {
	value := fmt.Sprint(s.field)
	switch v := s.field.Interface().(type) {
	case interface{ redacted() string }:
		return v.redacted()
	case time.Duration:
		return v.String()
	}
	if s.secret && value != "" {
		return "********"
	}
	return value
}
