package dashboard

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

func queueURL(vhost, name string) string {
	return "/queue?" + url.Values{"vhost": {vhost}, "name": {name}}.Encode()
}

func lettersURL(vhost, name string) string {
	return "/dead-letter?" + url.Values{"vhost": {vhost}, "name": {name}}.Encode()
}

// leftReasons say in words why a replay leaves a message where it is.
var leftReasons = map[string]string{
	"replayed_too_often": "replayed too often before", "no_origin": "never died: where from is not known",
	"no_time_left": "have no time left: choose a fresh time to live", "unroutable": "would reach no queue", "target_full": "found their queue full",
	"leads_back": "would come back here", "gone": "were taken or expired meanwhile", "refused": "were refused",
}

func leftWords(reason string) string {
	if words, ok := leftReasons[reason]; ok {
		return words
	}
	return visible(reason)
}

// thousands is a narrow space.
const thousands = '\u202f'

// number groups digits by thousands.
func number(v any) string {
	digits := fmt.Sprint(v)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteRune(thousands)
		}
		b.WriteRune(c)
	}
	return sign + b.String()
}

// plural is "1 message", "1 200 messages".
func plural(v any, noun string) string {
	if fmt.Sprint(v) == "1" {
		return "1 " + noun
	}
	return number(v) + " " + noun + "s"
}

func byteCount(n int64) string {
	units, v := []string{"B", "KiB", "MiB", "GiB", "TiB"}, float64(n)
	i := 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	if i == 0 || v >= 100 {
		return fmt.Sprintf("%.0f %s", v, units[i])
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

func rateText(perSecond float64) string {
	switch {
	case perSecond == 0:
		return "0"
	case perSecond < 10:
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	default:
		return number(int64(perSecond + 0.5))
	}
}

// span is a duration in its two largest units.
func span(d time.Duration) string {
	if d < 0 {
		return "-" + span(-d)
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

func millis(n int64) string { return span(time.Duration(n) * time.Millisecond) }

func since(t time.Time) string { return span(time.Since(t)) }

func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func utc(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02 15:04:05.000 UTC")
}

func clock(millis int64) string { return time.UnixMilli(millis).UTC().Format("15:04:05") }

// until says when an instant is as seen from another.
func until(at, now int64) string {
	if at <= now && now-at < 2000 {
		return "now"
	}
	if at <= now {
		return span(time.Duration(now-at)*time.Millisecond) + " ago"
	}
	return "in " + span(time.Duration(at-now)*time.Millisecond)
}

// maxName bounds what is shown of a name.
const maxName = 1024

// visible shows a name that somebody chose: what could hide, reverse or break a line is
// shown as its code.
func visible(text string) string {
	if text == "" {
		return "(empty)"
	}
	var b strings.Builder
	for i, c := range text {
		switch {
		case b.Len() > maxName:
			return b.String() + "…"
		case c == utf8.RuneError:
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				fmt.Fprintf(&b, `\x%02x`, text[i])
				continue
			}
			b.WriteRune(c)
		case c == ' ' || c == thousands || unicode.IsGraphic(c) && !unicode.Is(unicode.Zs, c):
			b.WriteRune(c)
		default:
			fmt.Fprintf(&b, `\u{%x}`, c)
		}
	}
	return b.String()
}
