package cluster

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"curfew/broker/deadline"
)

// Mode is what is done with a queue.
type Mode string

const (
	// Observe: report which deadlines were missed and which will be.
	Observe Mode = "observe"
	// Keep: make RabbitMQ expire its messages on time.
	Keep Mode = "keep"
	// Off: nothing.
	Off Mode = "off"
	// Delay: deliver each of its messages when it is due. Nobody else consumes from it.
	Delay Mode = "delay"
	// Retry: bring each of its messages, which a worker has rejected, back to the queue that it was rejected in, or park it. Nobody else consumes from it.
	Retry Mode = "retry"
)

var modes = []Mode{Observe, Keep, Off, Delay, Retry}

// Holds reports whether messages of its queues are held.
func (m Mode) Holds() bool { return m == Keep || m.Waits() }

// Waits reports whether all messages of its queues are held until they are due, and nobody else consumes.
func (m Mode) Waits() bool { return m == Delay || m == Retry }

// Cancel is who may cancel, replace or reschedule a delayed message by another message.
type Cancel string

const (
	CancelOff      Cancel = ""          // nobody
	CancelAny      Cancel = "any"       // everybody who may publish to the queue
	CancelSameUser Cancel = "same_user" // whoever has published it, by the property user-id of both
)

const (
	// NamePrefix begins the names of Curfew's own queues. They are never watched.
	NamePrefix = "curfew."

	// defaultMessages is how many messages of a queue are held at most, unless a rule sets
	// another limit; MaxClassic and maxQuorum are the most that a rule may say. Giving back more
	// than MaxClassic keeps a classic queue busy for many seconds.
	defaultMessages = 100_000
	MaxClassic      = 100_000
	maxQuorum       = 1_000_000
	// defaultBytes is how many bytes of bodies are held at most.
	defaultBytes = 1 << 30
	// defaultHolds is how many messages are taken in a second.
	defaultHolds = 5_000
)

// Budget bounds what keeping one queue may cost.
type Budget struct {
	Messages int   // held at once
	Bytes    int64 // of the bodies of the messages held
	Holds    int   // messages taken in a second, at the start and after a release
}

// mostHeld is how many messages are held at most unless the rule says so: of a queue that only waits, as many as may be.
func (r Rule) mostHeld() int {
	if r.Mode.Waits() {
		return maxQuorum
	}
	return defaultMessages
}

// Rule says what is done with the queues that match a pattern.
type Rule struct {
	VHost   string // empty: that of the address
	Pattern string // a name, with * for any characters and ? for one
	Mode    Mode
	Budget  Budget
	// Assume is the type of the queues if the management API cannot tell. Whoever sets it
	// vouches for the queues: none of the reasons to refuse applies to them.
	Assume QueueType
	// AlertOnExpiry: when a message of a kept queue expires, that is a miss. If it is not set, the
	// message was meant to expire: a delay, a retry.
	AlertOnExpiry bool
	// Cancel is who may cancel delayed messages.
	Cancel Cancel
	// Exchange is the one that a delay queue is bound to for x-delay; "": that with its name less DelaySuffix.
	Exchange string
	// Backoff is for mode retry.
	Backoff Backoff
}

// Backoff says how long a message waits that a worker has rejected. The last step counts for all further times, or with Park, there are none.
type Backoff struct {
	Steps  []deadline.Millis
	Jitter uint8  // percent by which a wait may be longer
	Park   string // the queue for what was rejected once more than there are steps; {queue} is the one it was rejected in. "": none
}

// ParkOf returns where messages of a queue are parked; "": nowhere.
func (b *Backoff) ParkOf(queue string) string { return strings.ReplaceAll(b.Park, "{queue}", queue) }

// Wait returns how long a message waits that was rejected so many times. parks: it does not wait, but is parked.
func (b *Backoff) Wait(times int64, salt uint64) (wait time.Duration, parks bool) {
	if b.Park != "" && times > int64(len(b.Steps)) {
		return 0, true
	}
	at := min(max(times, 1), int64(len(b.Steps))) - 1
	return b.Steps[at].Jitter(b.Jitter, salt).Duration(), false
}

// Linear reports whether RabbitMQ's own delayed retry, from 4.3 on, waits just as long: the first step times the number of the time, at most the last one.
func (b *Backoff) Linear() bool {
	first, last := b.Steps[0], b.Steps[len(b.Steps)-1]
	for i, step := range b.Steps {
		if step != min(first*deadline.Millis(i+1), last) {
			return false
		}
	}
	return b.Park == "" && b.Jitter == 0
}

// DelaySuffix is the end of the name of a delay queue whose exchange has the same name without it.
const DelaySuffix = ".delay"

// UndeliveredSuffix is in place of it at the end of the names of the exchange and of the queue for messages that were due and that no queue takes. If they
// stayed with RabbitMQ's at-least-once dead-lettering, which has 32 messages of a queue in flight, they would hold up the others.
const UndeliveredSuffix = ".undelivered"

// ExchangeOf returns the exchange that a delay queue is bound to; "": it is fed by other bindings.
func (r Rule) ExchangeOf(queue string) string {
	if name, ok := strings.CutSuffix(queue, DelaySuffix); ok && r.Exchange == "" {
		return name
	}
	return r.Exchange
}

// ExpiryIntended reports whether messages of its queues are meant to expire.
func (r Rule) ExpiryIntended() bool { return r.Mode.Holds() && !r.AlertOnExpiry }

func defaultRule() Rule {
	return Rule{Mode: Observe, Budget: Budget{Messages: defaultMessages, Bytes: defaultBytes, Holds: defaultHolds}}
}

// Watch is an ordered list of rules. The first one that matches a queue applies to it; a
// queue without one is not watched.
type Watch []Rule

// DefaultWatch observes every queue.
func DefaultWatch() Watch {
	r := defaultRule()
	r.Pattern = "*"
	return Watch{r}
}

// ParseWatch reads rules of the form mode:pattern, separated by commas, such as
// keep:retry-*,observe:*. Without a mode, a rule observes. The pattern ends at the next comma.
func ParseWatch(text string) (Watch, error) {
	var w Watch
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		r := defaultRule()
		mode, pattern, ok := strings.Cut(part, ":")
		if !ok {
			mode, pattern = string(Observe), part
			if end := filepath.Ext(part); end == ".yaml" || end == ".yml" {
				return nil, fmt.Errorf("%q looks like a file: begin its path with / or . (for a queue of that name, write observe:%s)", part, part)
			}
		}
		r.Mode, r.Pattern = Mode(mode), pattern
		if !slices.Contains(modes, r.Mode) {
			return nil, fmt.Errorf("%q: unknown mode %q: want observe, keep, delay or off, as in keep:retry-*,observe:*", part, mode)
		}
		if r.Mode == Retry {
			return nil, fmt.Errorf("%q: mode retry needs a back-off: write the rule into a file, whose path is then the value", part)
		}
		r.Budget.Messages = r.mostHeld()
		if err := checkPattern(pattern); err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		w = append(w, r)
	}
	return w, nil
}

func checkPattern(pattern string) error {
	switch {
	case pattern == "":
		return fmt.Errorf("the name of the queue is missing; it may have * for any characters and ? for one")
	case len(pattern) > 255:
		return fmt.Errorf("the name of a queue has at most 255 bytes, and this one has %d", len(pattern))
	case !utf8.ValidString(pattern):
		return errors.New("the name of a queue is UTF-8, and this one is not")
	}
	return nil
}

// Rule finds the rule for a queue in the virtual host that the address names. False: the
// queue is not watched.
func (w Watch) Rule(vhost, queue string) (Rule, bool) {
	if strings.HasPrefix(queue, NamePrefix) {
		return Rule{}, false
	}
	for _, r := range w {
		if (r.VHost == "" || r.VHost == vhost) && glob(r.Pattern, queue) {
			return r, r.Mode != Off
		}
	}
	return Rule{}, false
}

// Names lists the patterns that are plain names, for a broker that cannot list its queues,
// and the other patterns, which match nothing there.
func (w Watch) Names() (names, patterns []string) {
	for _, r := range w {
		switch {
		case r.Mode == Off:
		case strings.ContainsAny(r.Pattern, "*?"):
			patterns = append(patterns, r.Pattern)
		default:
			names = append(names, r.Pattern)
		}
	}
	return names, patterns
}

// Expression is a pattern of a rule as a regular expression for RabbitMQ, without its ends. RabbitMQ compares bytes, and a character is one byte and those that
// continue it.
func Expression(pattern string) string { return expression(pattern, `[^\x80-\xBF][\x80-\xBF]*`) }

func expression(pattern, character string) string {
	return strings.NewReplacer(`\*`, ".*", `\?`, character).Replace(regexp.QuoteMeta(pattern))
}

var expressions sync.Map // by pattern: a *regexp.Regexp

// glob matches * with any characters and ? with one.
func glob(pattern, name string) bool {
	found, known := expressions.Load(pattern)
	if !known {
		found, _ = expressions.LoadOrStore(pattern, regexp.MustCompile("^(?s:"+expression(pattern, ".")+")$"))
	}
	return found.(*regexp.Regexp).MatchString(name)
}

// mostMeasured is up to how many bytes an expression may have that is part of a question to the management API.
const mostMeasured = 2000

// Measured is a regular expression for the names of the queues whose statistics the rules need; "": for all. RabbitMQ computes statistics of those only: with ten thousand
// queues, half of its work for a look. Retries need those of their work queues, which no rule names.
func (w Watch) Measured(vhost string) string {
	var all []string
	for _, r := range w {
		switch {
		case r.VHost != "" && r.VHost != vhost || r.Mode == Off:
		case r.Mode == Retry || r.Pattern == "*":
			return ""
		default:
			all = append(all, Expression(r.Pattern))
		}
	}
	if text := "^(" + strings.Join(all, "|") + ")$"; len(text) <= mostMeasured {
		return text
	}
	return ""
}

// TapPrefix begins the names of the queues that Curfew declares in RabbitMQ. The permissions
// of its user name it.
const TapPrefix = NamePrefix + "tap."

// TapName returns a new name for a queue of Curfew's own. Nobody else has it, not even an
// earlier connection of Curfew that RabbitMQ still takes for alive. It ends with what the
// queue is for, and is cut to the 255 bytes that AMQP allows.
func TapName(purpose string) string {
	name := TapPrefix + strings.ToLower(rand.Text()[:10]) + "." + purpose
	if len(name) > 255 {
		name = strings.ToValidUTF8(name[:255], "")
	}
	return name
}
