package incident

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// severities are those that a rule may set: the ones that every sink can express.
var severities = []string{"critical", "error", "warning", "info"}

// Rule decides who is notified of the incidents that it matches. An incident goes to the first rule that matches it.
type Rule struct {
	Name     string   `json:"name"`
	Events   []string `json:"events,omitempty"`   // names of conditions; absent: all
	VHost    string   `json:"vhost"`              // pattern of one of its queues; * matches all
	Queue    string   `json:"queue"`              // likewise
	To       []string `json:"to"`                 // names of sinks
	Severity string   `json:"severity,omitempty"` // absent: the level of the incident
	Count    int64    `json:"count"`              // the least number of messages that it notifies of
	Lateness string   `json:"lateness"`           // the least lateness that it notifies of
}

// rule is a Rule at work. Its To is nil if it sends to every sink.
type rule struct {
	Rule
	vhost, queue pattern // zero: any
	lateness     time.Duration
}

// everything is the rule of the incidents that no other matches.
var everything = &rule{Rule: Rule{Name: "default", VHost: "*", Queue: "*", Count: 1}}

func (r *rule) matches(i *incident) bool {
	if r.Events != nil && !slices.Contains(r.Events, i.of.Name) {
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
func (r *rule) sends(sink string) bool { return r.To == nil || slices.Contains(r.To, sink) }

// pattern is a name in which * stands for any text and ? for any one character. Its zero value matches everything.
type pattern struct{ re *regexp.Regexp }

func newPattern(text string) pattern {
	if text == "" || text == "*" {
		return pattern{}
	}
	quoted := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(text))
	return pattern{regexp.MustCompile(`(?s)\A` + quoted + `\z`)}
}

func (p pattern) matches(name string) bool { return p.re == nil || p.re.MatchString(name) }
