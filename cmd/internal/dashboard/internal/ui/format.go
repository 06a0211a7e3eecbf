package ui

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"curfew/broker/operate"
	"curfew/monitor/printable"
)

// Number groups digits by thousands.
func Number[T int | int64 | uint64](n T) string { return humanize.Comma(int64(n)) }

// Plural is "1 message", "1,200 messages", "3 policies".
func Plural[T int | int64 | uint64](n T, noun string) string {
	return Number(n) + " " + english.PluralWord(int(n), noun, "")
}

// Bytes is a size in its largest unit, a power of 1,024.
func Bytes(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// PerSecond has one decimal place below ten a second, and none above.
func PerSecond(rate float64) string {
	switch {
	case rate == 0:
		return "0"
	case rate < 10:
		return strconv.FormatFloat(rate, 'f', 1, 64)
	default:
		return Number(int64(rate + 0.5))
	}
}

// Span is a duration in its two largest units.
func Span(d time.Duration) string { return printable.Span(d) }

// Lateness is a duration that may be less than a millisecond.
func Lateness(d time.Duration) string {
	if d < 10*time.Millisecond {
		return strconv.FormatFloat(float64(d.Round(100*time.Microsecond).Microseconds())/1000, 'f', -1, 64) + " ms"
	}
	return Span(d)
}

// Millis is a duration of n ms.
func Millis(n int64) string { return Span(time.Duration(n) * time.Millisecond) }

// Instant is a date and a time of day, in UTC to the second.
func Instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// UTC is a date and a time of day, in UTC to the millisecond.
func UTC(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02 15:04:05.000 UTC")
}

// Clock is a time of day, in UTC to the second. It has the day if that is not today.
func Clock(millis int64) string { return printable.Clock(time.UnixMilli(millis)) }

// Until is an instant as seen from another: "in 5 s", "now", "5 s ago".
func Until(at, now int64) string {
	if at <= now && now-at < 2000 {
		return "now"
	}
	if at <= now {
		return Span(time.Duration(now-at)*time.Millisecond) + " ago"
	}
	return "in " + Span(time.Duration(at-now)*time.Millisecond)
}

// maxName bounds how much of a name is shown.
const maxName = 1024

// Visible shows a name that a user chose.
func Visible(text string) string {
	switch {
	case text == "":
		return "(empty)"
	case len(text) > maxName:
		end := maxName
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		return printable.Text(text[:end], "") + "…"
	}
	return printable.Text(text, "")
}

// Sentence is text with an upper-case first letter.
func Sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + text[size:]
}

// Losses says what expired in a queue: "3 lost, 40 dead-lettered, 5 parked".
func Losses(l operate.Losses) string {
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{{l.Lost, " lost"}, {l.Rescued - l.Parked, " dead-lettered"}, {l.Parked, " parked"}} {
		if p.n > 0 {
			parts = append(parts, Number(p.n)+p.what)
		}
	}
	return strings.Join(parts, ", ")
}
