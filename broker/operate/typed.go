package operate

import (
	"fmt"
	"strconv"
	"time"

	"curfew/broker/deadline"
)

// Read reads what somebody typed for a field of this kind, and returns a JSON value. The error says what to type.
func (k Kind) Read(text string) (v any, err error) {
	switch k {
	case Number:
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
		v = text
	case Instant:
		var at time.Time
		at, err = deadline.ParseTime(text)
		v = at.UnixMilli()
	case Object:
		return ParseObject(text)
	default:
		v = text
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
