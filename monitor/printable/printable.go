// Package printable makes text from strangers (names, message-ids, what a server says) safe to show on a terminal and on
// a page. It also writes durations for people.
package printable

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// Text replaces each character of text that is not printable with an escape, so that nothing in it moves a cursor, sets a
// title, hides, reverses or breaks a line. Characters in keep stay.
func Text(text, keep string) string {
	var b strings.Builder
	for at, r := range text {
		_, size := utf8.DecodeRuneInString(text[at:])
		part := text[at : at+size]
		if unicode.IsPrint(r) && (r != utf8.RuneError || size > 1) || strings.ContainsRune(keep, r) {
			b.WriteString(part)
			continue
		}
		quoted := strconv.QuoteToASCII(part)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// Number has separators: 1,200.
func Number(n int64) string { return humanize.Comma(n) }

// Plural is a number with its thing: 1 message, 1,200 messages.
func Plural(n int64, thing string) string {
	return Number(n) + " " + english.PluralWord(int(n), thing, "")
}

// Clock is a time of day, in UTC to the second. It has the day if that is not today.
func Clock(at time.Time) string {
	at, layout := at.UTC(), "15:04:05"
	if now := time.Now().UTC(); at.YearDay() != now.YearDay() || at.Year() != now.Year() {
		layout = "2 Jan 15:04:05"
	}
	return at.Format(layout)
}

// Span writes a duration in its two largest units.
func Span(d time.Duration) string {
	if d < 0 {
		return "-" + Span(-d)
	}
	if d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	if d < time.Minute {
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + " s"
	}
	units := []struct {
		name string
		of   time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}}
	for i, u := range units {
		if d < u.of {
			continue
		}
		text := fmt.Sprintf("%d %s", d/u.of, u.name)
		if i+1 < len(units) {
			if rest := d % u.of / units[i+1].of; rest > 0 {
				text += fmt.Sprintf(" %d %s", rest, units[i+1].name)
			}
		}
		return text
	}
	return ""
}

// packages are the single words before an error, at the start, in brackets or after another clause: these are names of packages. What they follow
// is the first group.
const packages = `(?:(^|[(;] ?|: )(?:[\w-]+: )+)?`

// plain has the errors that Go and its libraries are known for, each with what it says to an operator. The single words
// before an error, which are names of packages, go with it.
var plain = []struct {
	error *regexp.Regexp
	says  string
}{
	{regexp.MustCompile(packages + `(?:\w+ "([^"]*)": )?dial \w+ (\S+): connect: connection refused`), "${1}nothing listens on ${3}"},
	{regexp.MustCompile(packages + `(?:\w+ "([^"]*)": )?dial \w+ (\S+): (?:i/o timeout|connect: (?:connection timed out|no route to host|network is unreachable))`), "${1}${3} cannot be reached"},
	{regexp.MustCompile(packages + `(?:\w+ "([^"]*)": )?dial \w+: lookup (\S+?)(?: on \S+)?: (?:no such host|server misbehaving)`), "${1}the name ${3} is not known"},
	{regexp.MustCompile(packages + `(?:read|write) \w+ \S+->(\S+): (?:(?:read|write): )?(?:connection reset by peer|broken pipe)`), "${1}${2} has cut the connection"},
	{regexp.MustCompile(packages + `(?:read|write) \w+ \S+->(\S+): i/o timeout`), "${1}${2} does not answer in time"},
	{regexp.MustCompile(packages + `(?:\w+ "([^"]*)": )?(?:context deadline exceeded|net/http: request canceled)(?: \([^)]*\))?`), "${1}it does not answer in time"},
	{regexp.MustCompile(packages + `(?:\w+ "([^"]*)": )?(?:unexpected EOF|EOF)\b`), "${1}the connection was cut"},
	{regexp.MustCompile(packages + `Exception \(\d+\) Reason: "([^"]*)"`), "${1}RabbitMQ says: ${2}"},
	{regexp.MustCompile(packages + `(?:WRONGPASS|NOAUTH)[^;)]*`), "${1}the password is refused"},
	{regexp.MustCompile(packages + `(?:tls: failed to verify certificate: )?x509: ([^;)]*)`), "${1}its certificate is not valid: ${2}"},
	{regexp.MustCompile(packages + `(?:\w+ \S+: )?no space left on device`), "${1}the disk is full"},
}

// Plainly is a text without the words of Go's errors.
func Plainly(text string) string {
	for _, p := range plain {
		text = p.error.ReplaceAllString(text, p.says)
	}
	return text
}
