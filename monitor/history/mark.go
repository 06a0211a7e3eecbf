package history

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"time"

	"curfew/monitor/printable"
)

// Kind says what a Mark is about.
type Kind string

// The kinds of marks.
const (
	Started       Kind = "started"        // the process
	AlertFired    Kind = "alert"          // an incident began
	AlertOver     Kind = "alert_over"     // it is over
	ScheduleLost  Kind = "redis_lost"     // Redis does not answer, or is behind
	ScheduleBack  Kind = "redis_back"     // it does again
	PolicyChanged Kind = "policy"         // a policy was set or removed, or definitions were imported
	Changed       Kind = "change"         // a user changed something else: a virtual host, a user, a permission, deleted a queue or an exchange, closed a connection, or replays dead letters
	ConsumersGone Kind = "consumers_gone" // at least half of a queue's consumers left
	ConsumersBack Kind = "consumers_back" // a queue has consumers again, or its first, or those of another application
	Deployed      Kind = "deploy"         // an application connected with a version that is new
)

const (
	maxMarks = 512
	// marksAtOnce is how many marks of a kind that begin together are kept; the others become one.
	marksAtOnce = 8
	// maxNamed is how many queues of a mark about several are remembered, and namedInText how many its text names.
	maxNamed, namedInText = 100, 3
)

// Mark is something that happened once.
type Mark struct {
	At    int64  `json:"at"`   // Unix ms
	Kind  Kind   `json:"kind"` // started, alert, alert_over, redis_lost, redis_back, policy, change, consumers_gone, consumers_back or deploy
	Text  string `json:"text"`
	VHost string `json:"vhost,omitempty"` // "": it is not about a virtual host
	Queue string `json:"queue,omitempty"` // "": it is not about one queue
	About string `json:"about,omitempty"` // the ID of an incident, an application, or the client that left or came
	Page  string `json:"page"`            // path of the dashboard's page that shows more

	// Of a mark about the consumers of several queues: how many queues, and the first of their names.
	Queues int      `json:"-"`
	Named  []string `json:"-"`
	// Consumers are how many left, or are there again.
	Consumers int    `json:"-"`
	Was       string `json:"-"` // the client in whose place another came
}

// marks are the last marks, in the order in which they were added.
type marks struct {
	list    []Mark
	version int64 // grows with each mark, and over restarts
}

// add adds a mark. If there are too many, one of the kind goes that has the most, so that what happens all the time does not displace what
// happened once.
func (m *marks) add(one Mark) {
	if len(m.list) >= maxMarks {
		of, most := make(map[Kind]int), m.list[0].Kind
		for i := range m.list {
			kind := m.list[i].Kind
			if of[kind]++; of[kind] > of[most] {
				most = kind
			}
		}
		first := slices.IndexFunc(m.list, func(x Mark) bool { return x.Kind == most })
		m.list = slices.Delete(m.list, first, first+1)
	}
	m.list = append(m.list, one)
	m.version++
}

// addTogether adds marks of one kind that belong to one moment; rest says what those above marksAtOnce are.
func (m *marks) addTogether(list []Mark, rest string) {
	slices.SortFunc(list, func(a, b Mark) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.About, b.About), cmp.Compare(a.Queue, b.Queue))
	})
	if more := len(list) - marksAtOnce; more > 1 {
		list[marksAtOnce] = Mark{At: list[len(list)-1].At, Kind: list[0].Kind, Text: fmt.Sprintf(rest, more)}
		list = list[:marksAtOnce+1]
	}
	for i := range list {
		m.add(list[i])
	}
}

// lasted is how long it is, in words, since the last mark of a kind; "" if there is none.
func (m *marks) lasted(since Kind, until int64) string {
	for _, one := range slices.Backward(m.list) {
		if one.Kind == since {
			return " after " + printable.Span(time.Duration(until-one.At)*time.Millisecond)
		}
	}
	return ""
}

// Changes are marks within a span, at most n, the latest first: without incidents, which are known by themselves. If there are more, the last two
// are among them, and then those about the queues of incidents, the worst first.
func (h *History) Changes(span time.Duration, n int, incidents [][2]string) (list []Mark) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := h.now().Add(-span).UnixMilli()
	for _, one := range h.marks.list {
		if one.At >= from && one.Kind != AlertFired && one.Kind != AlertOver {
			one.Page = one.page()
			list = append(list, one)
		}
	}
	latest := func(a, b Mark) int { return cmp.Compare(b.At, a.At) }
	place := func(m *Mark) int {
		return slices.IndexFunc(incidents, func(q [2]string) bool { return m.VHost == q[0] && (m.Queue == q[1] || slices.Contains(m.Named, q[1])) })
	}
	slices.SortStableFunc(list, latest)
	slices.SortStableFunc(list[min(len(list), 2):], func(a, b Mark) int { return cmp.Compare(uint(place(&a)), uint(place(&b))) }) // -1, none, is the last
	list = list[:min(len(list), n)]
	slices.SortStableFunc(list, latest)
	return list
}

// page is the page of the dashboard that shows what the mark is about.
func (m *Mark) page() string {
	switch m.Kind {
	case AlertFired, AlertOver:
		if m.About != "" {
			return "/incidents#incident-" + m.About
		}
		return "/incidents"
	case ScheduleLost, ScheduleBack:
		return "/incidents"
	case PolicyChanged:
		return "/policies"
	case Changed:
		return "/audit?reason=changed"
	case ConsumersGone, ConsumersBack:
		if m.Queue != "" {
			return "/queue?" + url.Values{"vhost": {m.VHost}, "name": {m.Queue}}.Encode()
		}
		return "/queues?" + url.Values{"vhost": {m.VHost}}.Encode()
	case Deployed:
		return "/connections?" + url.Values{"q": {m.About}}.Encode()
	case Started:
	}
	return "/#parts"
}

// AddNow adds a mark for something that has just happened.
func (h *History) AddNow(one Mark) {
	one.At = h.now().UnixMilli()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks.add(one)
}
