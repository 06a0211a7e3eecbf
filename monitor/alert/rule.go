package alert

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// severities are those that a rule may set: the ones that every sink can express.
var severities = []string{"critical", "error", "warning", "info"}

// rule decides on the notifications of the events that it matches. An event goes to the first rule that matches it.
type rule struct {
	name         string
	kinds        []Kind  // nil: all
	vhost, queue pattern // zero: any
	to           []string
	everywhere   bool   // to every sink, whatever to has
	severity     string // empty: that of the kind

	count    int64         // fewer messages make no notification
	lateness time.Duration // nor does a lateness below this one
}

func (r *rule) matches(k key) bool {
	return (r.kinds == nil || slices.Contains(r.kinds, k.kind)) && r.vhost.matches(k.vhost) && r.queue.matches(k.queue)
}

// sends reports whether a sink gets the events that the rule matches.
func (r *rule) sends(sink string) bool {
	return r.everywhere || slices.Contains(r.to, sink)
}

// severityOf is the severity of alerts of the kind.
func (r *rule) severityOf(k Kind) string {
	if r.severity != "" && int(k) < ruled {
		return r.severity
	}
	return kinds[k].severity
}

// pattern is a name in which * stands for any text and ? for any one character. Its zero value
// matches everything.
type pattern struct {
	text string
	re   *regexp.Regexp
}

func newPattern(text string) pattern {
	if text == "" || text == "*" {
		return pattern{text: text}
	}
	quoted := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(text))
	return pattern{text: text, re: regexp.MustCompile(`(?s)\A` + quoted + `\z`)}
}

func (p pattern) matches(name string) bool { return p.re == nil || p.re.MatchString(name) }

func (p pattern) String() string {
	if p.text == "" {
		return "*"
	}
	return p.text
}
