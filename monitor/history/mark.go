package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Kind says what a Mark is about.
type Kind string

// The kinds of marks.
const (
	Started       Kind = "started"    // the process
	AlertFired    Kind = "alert"      // an alert began
	ScheduleLost  Kind = "redis_lost" // Redis does not answer, or is behind
	ScheduleBack  Kind = "redis_back"
	PolicyChanged Kind = "policy" // a policy was set or removed, or definitions were imported
)

const (
	maxMarks = 512
	// marksAtOnce is how many alerts that begin together get a mark each.
	marksAtOnce = 8
	scheduleUp  = "up"
)

// Mark is something that happened once.
type Mark struct {
	At    int64  `json:"at"`   // Unix ms
	Kind  Kind   `json:"kind"` // started, alert, redis_lost, redis_back or policy
	Text  string `json:"text"`
	VHost string `json:"vhost,omitempty"` // "": it is not about a virtual host
	Queue string `json:"queue,omitempty"` // "": it is not about one queue
}

// State is what the source watches. Whatever is new in it becomes a mark.
type State struct {
	// Schedule is "up" while the schedule in Redis fires, anything else while it does not, and "" without a Redis.
	Schedule string
	Since    time.Time // when that began; the zero time: not known
	Firing   []Alert
}

// Alert is an alert that fires.
type Alert struct {
	Key          string // the same for as long as it fires
	Text         string
	VHost, Queue string
	Since        time.Time
}

// state is what was seen last.
type state struct {
	seen     bool
	schedule string
	firing   map[string]bool
}

// marks are the last marks, in the order in which they were added.
type marks struct{ list []Mark }

func (m *marks) add(one Mark) {
	if len(m.list) >= maxMarks {
		m.list = slices.Delete(m.list, 0, len(m.list)-maxMarks+1)
	}
	m.list = append(m.list, one)
}

// AddNow adds a mark for something that has just happened.
func (h *History) AddNow(one Mark) {
	one.At = h.now().UnixMilli()
	h.add(one)
}

func (h *History) add(one Mark) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks.add(one)
}

// watch compares the state with the last one, and adds marks.
func (h *History) watch(now State, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, since := h.known, at.UnixMilli()
	if !now.Since.IsZero() && now.Since.Before(at) {
		since = now.Since.UnixMilli()
	}
	h.known = state{seen: true, schedule: now.Schedule, firing: make(map[string]bool, len(now.Firing))}
	switch up, wasUp := now.Schedule == scheduleUp, !was.seen || was.schedule == scheduleUp; {
	case now.Schedule == "" || up == wasUp:
	case up:
		h.marks.add(Mark{At: since, Kind: ScheduleBack, Text: "Redis is back"})
	default:
		h.marks.add(Mark{At: since, Kind: ScheduleLost, Text: "Redis is lost"})
	}
	var begun []Alert
	for _, a := range now.Firing {
		if h.known.firing[a.Key] = true; !was.firing[a.Key] {
			begun = append(begun, a)
		}
	}
	slices.SortFunc(begun, func(a, b Alert) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Key, b.Key)) })
	for i, a := range begun {
		if i == marksAtOnce && len(begun) > i+1 {
			h.marks.add(Mark{At: at.UnixMilli(), Kind: AlertFired, Text: fmt.Sprintf("%d more alerts", len(begun)-i)})
			break
		}
		h.marks.add(Mark{At: a.Since.UnixMilli(), Kind: AlertFired, Text: a.Text, VHost: a.VHost, Queue: a.Queue})
	}
}
