package history

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"curfew/monitor/printable"
)

// steadyFor is how many seconds a queue must have had consumers for a mark when they leave, and fewerFor how many they must be gone: clients that
// come for a moment, and clients that connect again, are no marks. noneFor is for how many it must have had none for a mark when its first come: soon after
// it is declared, or after a restart, they are no mark.
// sharedFor is for how many a client must have consumed beside another for no mark when that one leaves: it did not come in its place. awayFor is for how
// many that one may be away, as for a restart. overlapFor is for how many there must be more consumers than before to count as what the queue has: a new
// version of an application that starts before the old one stops is no loss when that does.
const steadyFor, fewerFor, noneFor, sharedFor, awayFor, overlapFor = 20, 10, 60, 60, 30, 120

// returnFor is how many seconds clients may take to come back after a start.
const returnFor = 25

// consumers are a queue's consumers, as far as marks are about them. The zero value has none.
type consumers struct {
	most   int   // since they last became fewer, for overlapFor
	since  int64 // when the first of them came, Unix s
	more   int   // how many more there are since moreAt, at least; 0: there are not
	moreAt int64
	fewer  int64 // since when they are half or less; 0: they are not
	before int   // how many there were of which a mark says that they are gone; 0: there is none
	none   int64 // since when there were none, before those of less than steadyFor; 0: that is long ago

	who     string // the client that consumed first, or last before all left; "": not known
	whoAt   int64  // since when it was the first; 0: that is long ago
	other   string // the one that is first instead, which is no instance of the same application; "": none is
	otherAt int64

	next     string // the client that consumes beside who; "": none is known
	nextAt   int64  // since when
	nextSeen int64  // until when
}

// see takes the number of consumers in a second. It returns a mark if it is time for one.
func (c *consumers) see(n int, second int64) *Mark {
	if c.most == 0 {
		c.since = second
	}
	switch {
	case 2*n > c.most:
		back, steady := c.before > 0 && (c.most == 0 || 2*n > c.before), second-c.since >= steadyFor
		first := steady && c.none > 0 && c.since-c.none >= noneFor
		c.grow(n, second, back)
		c.fewer = 0
		if back || steady {
			c.none = 0
		}
		if back {
			c.before = 0
			return &Mark{At: second * 1000, Kind: ConsumersBack, Text: fmt.Sprintf("has consumers again (%d)", n), Consumers: n}
		}
		if first {
			return &Mark{At: c.since * 1000, Kind: ConsumersBack, Text: fmt.Sprintf("has consumers now (%d)", n), Consumers: n}
		}
	case c.most == 0:
		c.none = cmp.Or(c.none, second)
	case c.fewer == 0:
		c.fewer = second
	case second-c.fewer >= fewerFor:
		gone, since, steady := c.most-n, c.fewer, c.fewer-c.since >= steadyFor
		c.most, c.fewer, c.more = n, 0, 0
		if !steady {
			return nil
		}
		c.before = max(c.before, gone+n)
		text := fmt.Sprintf("has lost %d of its %d consumers", gone, gone+n)
		if n == 0 {
			text = fmt.Sprintf("has lost all its consumers (%d)", gone)
		}
		return &Mark{At: since * 1000, Kind: ConsumersGone, Text: text, Consumers: gone}
	}
	return nil
}

// grow takes a number of consumers that are not fewer. They count at once if they are back, or soon after the first came.
func (c *consumers) grow(n int, second int64, back bool) {
	switch {
	case back || second-c.since < overlapFor:
		c.most, c.more = max(c.most, n), 0
	case n <= c.most:
		c.more = 0
	case c.more == 0:
		c.more, c.moreAt = n, second
	default:
		if c.more = min(c.more, n); second-c.moreAt >= overlapFor {
			c.most, c.more = c.more, 0
		}
	}
}

// instance is what follows the name of an application in that of a client: the number of an instance, but not one within a word, as in v2.
var instance = regexp.MustCompile(` \(user .*|[-._:# ]\d.*`)

func application(client string) string { return instance.ReplaceAllString(client, "") }

func same(a, b string) bool { return a == b || application(a) == application(b) }

// take takes who consumes in a second. It returns a mark if another application has consumed for fewerFor in place of one that was there for steadyFor,
// unless it was beside that one for sharedFor.
func (c *consumers) take(q *Queue, second int64) (m *Mark) {
	switch {
	case q.Consumers == 0 && q.Left != "":
		c.lead(q.Left, second)
	case q.Consumers == 0 || q.First == "":
	case c.who == "" || same(q.First, c.who):
		if c.who == "" {
			c.whoAt = second
		}
		c.who, c.other = q.First, ""
		c.share(q.Last, second)
	case !same(q.First, q.Last): // the one before may be among them
		c.other = ""
		c.share(q.First, second)
	case !same(q.First, c.other):
		c.other, c.otherAt = q.First, second
	case second-c.otherAt >= fewerFor:
		if c.otherAt-c.whoAt >= steadyFor && !(same(c.other, c.next) && c.otherAt-c.nextAt >= sharedFor) {
			m = &Mark{At: c.otherAt * 1000, Kind: ConsumersBack, Text: "has other consumers", Consumers: q.Consumers, About: c.other, Was: c.who}
		}
		c.lead(c.other, second)
		c.whoAt, c.other = c.otherAt, ""
		if m != nil {
			c.next = ""
		}
	}
	return m
}

// share takes the client that consumes beside who; who itself: none does.
func (c *consumers) share(client string, second int64) {
	switch {
	case !same(client, c.who):
		if !same(client, c.next) {
			c.next, c.nextAt = client, second
		}
		c.nextSeen = second
	case second-c.nextSeen >= awayFor:
		c.next = ""
	}
}

// lead makes a client who. The one before it consumes beside it, since as long as it did beside that.
func (c *consumers) lead(client string, second int64) {
	if c.who != "" && !same(client, c.who) {
		was := c.who
		c.share(client, second)
		c.next = was
	}
	c.who = client
}

// watchConsumersLocked takes the consumers of a queue.
func (h *History) watchConsumersLocked(s *series, q *Queue, second int64) {
	was := s.left
	if q.Consumers > 0 && q.First != "" {
		s.left, s.leftAt = q.First, second
	} else if q.Left != "" {
		s.left, s.leftAt = q.Left, q.LeftAt.Unix()
	}
	h.news = h.news || s.left != was
	m := s.consumers.see(q.Consumers, second)
	switch {
	case m == nil:
		m = s.consumers.take(q, second)
	case m.Kind == ConsumersGone:
		m.About = q.Left
	default:
		m.About, s.consumers.who, s.consumers.whoAt, s.consumers.other = q.First, q.First, second, ""
	}
	if m != nil {
		m.VHost, m.Queue = s.vhost, s.name
		m.say(s.name, m.Text)
		h.marks.addConsumers(m)
	}
}

// Departed calls fn with each queue that clients have consumed, the client that was the last, and when.
func (h *History) Departed(fn func(vhost, queue, client string, at time.Time)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.queues {
		if s.left != "" {
			fn(s.vhost, s.name, s.left, time.Unix(s.leftAt, 0))
		}
	}
}

// say sets the text, with the virtual host, unless that is the default one, and with who left or came.
func (m *Mark) say(queues, what string) {
	if m.VHost != "/" {
		queues += " (vhost " + m.VHost + ")"
	}
	switch {
	case m.About == "":
	case m.Kind == ConsumersGone:
		what += ": " + m.About + " left"
	case m.Was != "":
		what += ": " + m.About + " came, and " + m.Was + " left"
	default:
		what += ": " + m.About + " came"
	}
	m.Text = queues + " " + what
}

// moment is how far apart, in milliseconds, marks about the consumers of several queues are one: a client leaves all its queues at once.
const moment = 5000

// addConsumers adds a mark about the consumers of one queue, to the last one of its kind if that is of the same moment.
func (m *marks) addConsumers(one *Mark) {
	for i := len(m.list) - 1; i >= 0 && one.At-m.list[i].At <= moment; i-- {
		if last := &m.list[i]; last.Kind == one.Kind && last.VHost == one.VHost {
			last.join(one)
			m.version++
			return
		}
	}
	m.add(*one)
}

// join makes a mark about the consumers of several queues of one, or adds one to those.
func (m *Mark) join(one *Mark) {
	if m.Queues == 0 {
		m.Queues, m.Named, m.Queue = 1, []string{m.Queue}, ""
	}
	if m.About != one.About {
		m.About = ""
	}
	if m.Was != one.Was {
		m.Was = ""
	}
	m.Queues, m.Consumers = m.Queues+1, m.Consumers+one.Consumers
	if len(m.Named) < maxNamed {
		m.Named = append(slices.Clone(m.Named), one.Queue) // readers have the one before
	}
	first := m.Named[:min(len(m.Named), namedInText)]
	which := strings.Join(first, ", ")
	if more := m.Queues - len(first); more > 0 {
		which = fmt.Sprintf("%s and %s", which, printable.Plural(int64(more), "more queue"))
	}
	what := "have lost consumers"
	if m.Kind == ConsumersBack {
		what = "have consumers now"
	}
	m.say(which, fmt.Sprintf("%s (%d)", what, m.Consumers))
}
