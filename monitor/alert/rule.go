package alert

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// grouping says which alerts are told in one notification.
type grouping uint8

const (
	byEvent grouping = iota // all of an event
	byVHost                 // of an event and virtual host
	byQueue                 // of an event and queue
	single                  // every message is told for itself, within the rate limit
)

var groupings = [...]string{byEvent: "event", byVHost: "vhost", byQueue: "queue", single: "none"}

func groupingOf(name string) (grouping, bool) {
	i := slices.Index(groupings[:], name)
	return grouping(max(i, 0)), i >= 0
}

// severities are those a rule may give: what every sink can express.
var severities = []string{"critical", "error", "warning", "info"}

// rule says how the events it matches are told. The first that matches takes an event.
type rule struct {
	name         string
	kinds        []Kind  // nil: all
	vhost, queue pattern // zero: any
	to           []string
	everywhere   bool   // to every sink there is, whatever to says
	severity     string // empty: that of the kind
	group        grouping

	count    int64         // fewer messages are not told
	lateness time.Duration // nor are any if the worst of them is less late

	wait, interval, repeat time.Duration
}

func (r *rule) matches(k key) bool {
	return (r.kinds == nil || slices.Contains(r.kinds, k.kind)) && r.vhost.matches(k.vhost) && r.queue.matches(k.queue)
}

// sends says whether a sink is told what the rule takes.
func (r *rule) sends(sink string) bool {
	return r.everywhere || slices.Contains(r.to, sink)
}

// severityOf is what an alert of the kind is told with.
func (r *rule) severityOf(k Kind) string {
	if r.severity != "" {
		return r.severity
	}
	return kinds[k].severity
}

// groupOf is the group in which k is told.
func (r *rule) groupOf(k key) groupKey {
	g := groupKey{rule: r.name, kind: k.kind}
	switch r.group {
	case byVHost:
		g.vhost = k.vhost
	case byQueue, single:
		g.vhost, g.queue = k.vhost, k.queue
	}
	g.peer = k.peer // every silent instance is told for itself
	return g
}

// heldAgain is how often what a consumer holds past its deadline is looked at.
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
