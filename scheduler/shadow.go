package scheduler

import (
	"cmp"
	"errors"
	"fmt"
)

// MaxDeadline is the last instant a Store takes, in Unix µs: beyond it a score in Redis,
// which is a float64, is not exact. It is in the year 2255.
const MaxDeadline = 1<<53 - 1

// Millis is an instant or a span, in µs, as people are told it: in ms, rounded up.
func Millis(micros int64) int64 { return (micros + 999) / 1000 }

// Lengths of the text forms of an instant and of a Shadow.
const (
	InstantLen = 16
	TextLen    = InstantLen + 1 + 16 + 1 + 20
)

// ErrInstant is wrapped by a Store's refusal of a deadline, or another instant to
// stand at, outside 1 ..= MaxDeadline.
var ErrInstant = errors.New("instant out of range")

// ErrText is wrapped by ParseShadow's refusal.
var ErrText = errors.New("not a shadow's text form")

// Shadow is the scheduled copy of one queued message's deadline. It is its own
// identity: a Store holds equal ones once. The zero value is no valid shadow.
type Shadow struct {
	Deadline int64  // Unix µs
	Queue    uint64 // incarnation of the queue
	Seq      uint64 // of the message in its queue
}

// Later is a Shadow to be looked at again at another instant than its deadline.
type Later struct {
	Shadow
	At int64 // Unix µs
}

// Compare orders by deadline, then queue, then seq.
func (s Shadow) Compare(o Shadow) int {
	if c := cmp.Compare(s.Deadline, o.Deadline); c != 0 {
		return c
	}
	if c := cmp.Compare(s.Queue, o.Queue); c != 0 {
		return c
	}
	return cmp.Compare(s.Seq, o.Seq)
}

// Check refuses a deadline that no Store takes, wrapping ErrInstant.
func (s Shadow) Check() error { return CheckInstant(s.Deadline) }

// CheckInstant refuses an instant outside 1 ..= MaxDeadline, wrapping ErrInstant.
func CheckInstant(at int64) error {
	if at < 1 || at > MaxDeadline {
		return fmt.Errorf("scheduler: %w: %d µs", ErrInstant, at)
	}
	return nil
}

// String is the text form, or a description of a shadow that has none.
func (s Shadow) String() string {
	text, err := s.AppendText(make([]byte, 0, TextLen))
	if err != nil {
		return fmt.Sprintf("invalid shadow {%d %016x %d}", s.Deadline, s.Queue, s.Seq)
	}
	return string(text)
}

// AppendText appends the text form, TextLen bytes:
//
//	<deadline, 16 digits>|<queue, 16 hex digits>|<seq, 20 digits>
//
// Texts sort bytewise as Compare sorts shadows. The error wraps ErrInstant.
func (s Shadow) AppendText(b []byte) ([]byte, error) {
	b, err := AppendInstant(b, s.Deadline)
	if err != nil {
		return b, err
	}
	b = append(b, '|')
	b = appendDigits(b, s.Queue, 16, 16)
	b = append(b, '|')
	return appendDigits(b, s.Seq, 10, 20), nil
}

// AppendInstant appends an instant as InstantLen digits. The error wraps ErrInstant.
func AppendInstant(b []byte, at int64) ([]byte, error) {
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

// ParseShadow is the inverse of AppendText. It accepts that form only; the error
// wraps ErrText.
func ParseShadow[T ~string | ~[]byte](text T) (Shadow, error) {
	if len(text) != TextLen || text[16] != '|' || text[33] != '|' {
		return Shadow{}, refuse(text)
	}
	deadline, ok1 := parseDigits(text[:16], 10)
	queue, ok2 := parseDigits(text[17:33], 16)
	seq, ok3 := parseDigits(text[34:], 10)
	if !ok1 || !ok2 || !ok3 || deadline == 0 || deadline > MaxDeadline {
		return Shadow{}, refuse(text)
	}
	return Shadow{Deadline: int64(deadline), Queue: queue, Seq: seq}, nil
}

func refuse[T ~string | ~[]byte](text T) error {
	return fmt.Errorf("scheduler: %w: %.80q", ErrText, string(text))
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
