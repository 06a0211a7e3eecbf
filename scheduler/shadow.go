package scheduler

import (
	"errors"
	"fmt"
	"strconv"

	"curfew/broker/deadline"
)

// MaxDeadline is the last instant a Store takes, in Unix µs: beyond it a score in Redis,
// which is a float64, is not exact. It is in the year 2255.
const MaxDeadline = 1<<53 - 1

// TextLen is the length of the text form of a shadow.
const TextLen = 16 + 1 + 16 + 1 + 20

// ErrInstant is wrapped by a Store's error for a deadline or a score outside 1 to
// MaxDeadline.
var ErrInstant = errors.New("instant out of range")

// errText is wrapped by ParseText's error.
var errText = errors.New("not a shadow's text form")

// Later is a shadow that is due at an instant other than its deadline.
type Later struct {
	deadline.Ref
	At deadline.Instant
}

// before orders those that were moved: by score, deadline, queue and seq.
func (l Later) before(o Later) bool { return l.At < o.At || l.At == o.At && l.Compare(o.Ref) < 0 }

// CheckInstant refuses an instant outside 1 to MaxDeadline. The error wraps ErrInstant.
func CheckInstant(at deadline.Instant) error {
	if at < 1 || at > MaxDeadline {
		return fmt.Errorf("scheduler: %w: %d µs", ErrInstant, at)
	}
	return nil
}

// AppendText appends the text form of a shadow, TextLen bytes:
//
//	<deadline, 16 digits>|<queue, 16 hex digits>|<seq, 20 digits>
//
// Texts sort bytewise as deadline.Ref.Compare sorts shadows. The error wraps ErrInstant.
func AppendText(b []byte, shadow deadline.Ref) ([]byte, error) {
	if err := CheckInstant(shadow.Deadline); err != nil {
		return b, err
	}
	b = appendDigits(b, uint64(shadow.Deadline), 10, 16)
	b = appendDigits(append(b, '|'), shadow.Queue, 16, 16)
	return appendDigits(append(b, '|'), shadow.Seq, 10, 20), nil
}

// appendDigits appends v as n digits, the first of which may be 0.
func appendDigits(b []byte, v uint64, base, n int) []byte {
	var buf [20]byte
	digits := strconv.AppendUint(buf[:0], v, base)
	b = append(b, "00000000000000000000"[:n-len(digits)]...)
	return append(b, digits...)
}

// ParseText is the inverse of AppendText. It accepts that form only; the error
// wraps errText.
func ParseText(text string) (shadow deadline.Ref, err error) {
	if len(text) == TextLen {
		at, _ := strconv.ParseUint(text[:16], 10, 64)
		shadow.Deadline = deadline.Instant(at)
		shadow.Queue, _ = strconv.ParseUint(text[17:33], 16, 64)
		shadow.Seq, _ = strconv.ParseUint(text[34:], 10, 64)
	}
	// No other form is the text of what was read here.
	var buf [TextLen]byte
	if again, err := AppendText(buf[:0], shadow); err != nil || string(again) != text {
		return deadline.Ref{}, fmt.Errorf("scheduler: %w: %.80q", errText, text)
	}
	return shadow, nil
}
