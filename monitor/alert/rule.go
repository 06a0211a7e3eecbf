package alert

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// grouping is which alerts go into one notification.
type grouping uint8

const (
	byEvent grouping = iota // all of an event
	byVHost                 // of an event and virtual host
	byQueue                 // of an event and queue
	single                  // every message is a notification, within the rate limit
)

var groupings = [...]string{byEvent: "event", byVHost: "vhost", byQueue: "queue", single: "none"}

func groupingOf(name string) (grouping, bool) {
	i := slices.Index(groupings[:], name)
	return grouping(max(i, 0)), i >= 0
}

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
	group        grouping

	count    int64         // fewer messages make no notification
	lateness time.Duration // nor does a lateness below this one

	wait, interval, repeat time.Duration
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
	if r.severity != "" {
		return r.severity
	}
	return kinds[k].severity
}

// groupOf is the group of k.
func (r *rule) groupOf(k key) groupKey {
	g := groupKey{rule: r.name, kind: k.kind}
	switch r.group {
	case byVHost:
		g.vhost = k.vhost
	case byQueue, single:
		g.vhost, g.queue = k.vhost, k.queue
	}
	return g
}

// heldAgain is how often a message that a consumer holds past its deadline is recorded.
const heldAgain = 30 * time.Second

// quiet is how long nothing must happen for an alert to be over.
func (r *rule) quiet(k Kind) time.Duration {
	if k == HeldPastDeadline {
		return max(r.interval, 5*heldAgain/2)
	}
	return r.interval
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
