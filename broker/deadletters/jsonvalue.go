package deadletters

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// jsonValue is a value that a body must have at a path.
type jsonValue struct {
	steps  []jsonStep
	want   string
	number float64
	isOne  bool // want is a number
}

// jsonStep is the name of a member, or the number of an element.
type jsonStep struct {
	name string
	any  bool // any element
}

const (
	// maxPath is how long a path may be, in bytes, and maxSteps how many names it may have.
	maxPath  = 500
	maxSteps = 20
	// maxNested is how deep a body may be nested; what is deeper is not looked at. encoding/json has the same bound.
	maxNested = 10_000
)

// parsePath reads a path such as "customer.id", "items.0.sku" or "items.#.sku": the names of members and the numbers of elements from 0,
// separated by dots; # stands for any element. A backslash before a character takes away its special meaning, for names with a dot.
func parsePath(path, want string) (v jsonValue, err error) {
	if path == "" || len(path) > maxPath {
		return v, fmt.Errorf("a path has 1 to %d bytes, such as customer.id", maxPath)
	}
	step, escaped, literal := []byte{}, false, false
	for _, c := range []byte(path + ".") {
		switch {
		case escaped:
			escaped, literal = false, true
			step = append(step, c)
		case c == '\\':
			escaped = true
		case c == '.' && len(step) == 0:
			return v, fmt.Errorf("%q is not a path such as customer.id: a name is missing", path)
		case c == '.':
			v.steps = append(v.steps, jsonStep{string(step), string(step) == "#" && !literal})
			step, literal = step[:0], false
		default:
			step = append(step, c)
		}
	}
	if escaped || len(step) > 0 { // the last dot was escaped
		return v, fmt.Errorf("%q is not a path such as customer.id: it ends with a backslash", path)
	}
	if len(v.steps) > maxSteps {
		return v, fmt.Errorf("a path has at most %d names", maxSteps)
	}
	v.want = want
	v.number, err = strconv.ParseFloat(want, 64)
	v.isOne = err == nil || errors.Is(err, strconv.ErrRange)
	return v, nil
}

// level is an object or array on the path.
type level struct {
	array, named bool
	index        int
	name         string
}

// next records the name of a member, or the number of an element; value reports whether the token is a value.
func (l *level) next(token json.Token) (value bool) {
	if l.array {
		l.index++
		return true
	}
	if l.named = !l.named; l.named {
		l.name, _ = token.(string)
	}
	return !l.named
}

func (l *level) is(s *jsonStep) bool {
	if l.array {
		return s.any || s.name == strconv.Itoa(l.index)
	}
	return l.name == s.name
}

// in reports whether the body has the value. It takes time in proportion to the body, and no more memory than the longest text in it. (gjson,
// which is faster with a common body, takes the square of its length if that is "[[[[".) A body that is not JSON does not have it; one that is
// JSON up to some point may have it before that.
func (v *jsonValue) in(body []byte) bool {
	if !mayNest(body) {
		return false
	}
	tokens := json.NewDecoder(bytes.NewReader(body))
	tokens.UseNumber()
	var way []level // into the body, no deeper than the path
	aside := 0      // depth inside an object or array that is not on the path
	for {
		token, err := tokens.Token()
		if err != nil || aside > maxNested {
			return false
		}
		bracket, _ := token.(json.Delim)
		if bracket == '}' || bracket == ']' {
			if aside > 0 {
				aside--
			} else {
				way = way[:len(way)-1]
			}
			if len(way) == 0 && aside == 0 {
				return false
			}
			continue
		}
		on := aside == 0
		if on && len(way) > 0 {
			here := &way[len(way)-1]
			if !here.next(token) {
				continue
			}
			on = here.is(&v.steps[len(way)-1])
		}
		switch {
		case bracket != 0 && on && len(way) < len(v.steps):
			way = append(way, level{array: bracket == '[', index: -1})
		case bracket != 0:
			aside++
		case on && len(way) == len(v.steps) && v.is(token):
			return true
		}
	}
}

// is reports whether a token is the value. Strings are compared unescaped, numbers by value.
func (v *jsonValue) is(token json.Token) bool {
	switch x := token.(type) {
	case string:
		return x == v.want
	case json.Number:
		n, err := x.Float64()
		return x.String() == v.want || v.isOne && err == nil && n == v.number
	case bool:
		return strconv.FormatBool(x) == v.want
	}
	return v.want == "null" && token == nil
}

// mayNest reports whether a body may be a JSON object or array.
func mayNest(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	return len(body) > 0 && strings.IndexByte("{[", body[0]) >= 0
}
