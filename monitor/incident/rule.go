package incident

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// severities are those that a rule may set: the ones that every sink can express.
var severities = []string{"critical", "error", "warning", "info"}

// rule decides who is notified of the incidents that it matches. An incident goes to the first rule that matches it.
type rule struct {
	name         string
	events       []string // names of conditions; nil: all
	vhost, queue pattern  // of one of its queues; zero: any
	to           []string
	everywhere   bool   // to every sink, whatever to has
	severity     string // empty: the level of the incident

	count    int64         // fewer messages make no notification
	lateness time.Duration // nor does a lateness below this one
}

// everything is the rule whose notifications go to every sink.
var everything = &rule{name: "curfew", everywhere: true}

func (r *rule) matches(i *incident) bool {
	if r.events != nil && !slices.Contains(r.events, i.of.Name) {
		return false
	}
	for q := range i.members {
		if r.vhost.matches(q.VHost) && r.queue.matches(q.Name) {
			return true
		}
	}
	return false
}

// sends reports whether a sink gets what the rule matches.
func (r *rule) sends(sink string) bool { return r.everywhere || slices.Contains(r.to, sink) }

// severityOf is the severity of an incident of a level.
func (r *rule) severityOf(l Level) string {
	if r.severity != "" {
		return r.severity
	}
	return string(l)
}

// pattern is a name in which * stands for any text and ? for any one character. Its zero value matches everything.
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
