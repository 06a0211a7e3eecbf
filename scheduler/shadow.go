package scheduler

import (
	"errors"
	"fmt"

	"curfew/broker/deadline"
)

// MaxDeadline is the last instant a Store takes, in Unix µs: beyond it a score in Redis,
// which is a float64, is not exact. It is in the year 2255.
const MaxDeadline = 1<<53 - 1

// Lengths of the text forms of an instant and of a shadow.
const (
	InstantLen = 16
	TextLen    = InstantLen + 1 + 16 + 1 + 20
)

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
	b, err := AppendInstant(b, shadow.Deadline)
	if err != nil {
		return b, err
	}
	b = append(b, '|')
	b = appendDigits(b, shadow.Queue, 16, 16)
	b = append(b, '|')
	return appendDigits(b, shadow.Seq, 10, 20), nil
}

// AppendInstant appends an instant as InstantLen digits. The error wraps ErrInstant.
func AppendInstant(b []byte, at deadline.Instant) ([]byte, error) {
	if err := CheckInstant(at); err != nil {
		return b, err
	}
	return appendDigits(b, uint64(at), 10, InstantLen), nil
}

const digits = "0123456789abcdef"

// appendDigits appends the last n digits of v.
func appendDigits(b []byte, v, base uint64, n int) []byte {
	b = append(b, "00000000000000000000"[:n]...)
	for i := len(b) - 1; v > 0 && n > 0; i, n = i-1, n-1 {
		b[i] = digits[v%base]
		v /= base
	}
	return b
}

// ParseText is the inverse of AppendText. It accepts that form only; the error
// wraps errText.
func ParseText[T ~string | ~[]byte](text T) (deadline.Ref, error) {
	if len(text) != TextLen || text[16] != '|' || text[33] != '|' {
		return deadline.Ref{}, refuse(text)
	}
	at, ok1 := parseDigits(text[:16], 10)
	queue, ok2 := parseDigits(text[17:33], 16)
	seq, ok3 := parseDigits(text[34:], 10)
	if !ok1 || !ok2 || !ok3 || at == 0 || at > MaxDeadline {
		return deadline.Ref{}, refuse(text)
	}
	return deadline.Ref{Deadline: deadline.Instant(at), Queue: queue, Seq: seq}, nil
}

func refuse[T ~string | ~[]byte](text T) error {
	return fmt.Errorf("scheduler: %w: %.80q", errText, string(text))
}

// parseDigits reads lower-case digits; ok is false at another byte or overflow.
func parseDigits[T ~string | ~[]byte](text T, base uint64) (v uint64, ok bool) {
	for i := range len(text) {
		d := uint64(text[i] - '0')
		if text[i] >= 'a' {
			d = uint64(text[i]-'a') + 10
		}
		if text[i] < '0' || d >= base || text[i] > '9' && text[i] < 'a' {
			return 0, false
		}
		next := v*base + d
		if v > (1<<64-1)/base || next < v*base {
			return 0, false
		}
		v = next
	}
	return v, true
}
