package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	scheduleUp = "up"
	// maxClients and maxVersions bound the applications that are remembered, and the versions of each.
	maxClients, maxVersions = 1000, 20
	// crowded is how long ago, in seconds, the oldest of maxVersions versions must have been connected for another to take its place. What has more in
	// that time, such as a number for each connection, is not a version.
	crowded = 3600
	// fullFor is how many seconds an application is remembered that is not connected while there are maxClients.
	fullFor = 600
)

// State is what the source watches. Whatever is new in it becomes a mark.
type State struct {
	// Schedule is "up" while the schedule in Redis fires, anything else while it does not, and "" if that is not known: without Redis, or before a
	// start has brought it up.
	Schedule string
	Since    time.Time // when that began; the zero time: not known
	Firing   []Alert
	Over     map[string]Alert // the last ones that are over, by key: what they were, and since when they are
	Clients  []Client         // that are connected; one is enough of several that are equal
}

// Alert is an incident that is not over.
type Alert struct {
	Key          string // the same for as long as it lasts
	Text         string
	VHost, Queue string
	Since        time.Time
	Minor        bool // it is no mark, unless it was worse before
}

// Client is an application in a version, as a user ("": whoever it is).
type Client struct{ Name, User, Version string }

// state is what was seen last. The file has it, so that a restart marks nothing again that went on meanwhile.
type state struct {
	Schedule string
	Firing   map[string]Alert
	Clients  map[string]map[string]int64 // when each version of an application of a user was last connected, Unix s
}

// clone is a copy that nobody changes.
func (s *state) clone() state {
	c := state{s.Schedule, maps.Clone(s.Firing), make(map[string]map[string]int64, len(s.Clients))}
	for name, of := range s.Clients {
		c.Clients[name] = maps.Clone(of)
	}
	return c
}

// watch compares the state with the last one, and adds marks.
func (h *History) watch(now State, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchScheduleLocked(&now, at)
	h.watchAlertsLocked(&now, at.UnixMilli())
	h.watchClientsLocked(now.Clients, at.Unix())
}

func (h *History) watchScheduleLocked(now *State, at time.Time) {
	since := at.UnixMilli()
	if !now.Since.IsZero() && now.Since.Before(at) {
		since = now.Since.UnixMilli()
	}
	was := h.known.Schedule
	h.known.Schedule = cmp.Or(now.Schedule, was)
	switch up, wasUp := now.Schedule == scheduleUp, was == "" || was == scheduleUp; {
	case now.Schedule == "" || up == wasUp:
	case up:
		h.marks.add(Mark{At: since, Kind: ScheduleBack, Text: "Redis came back" + h.marks.lasted(ScheduleLost, since)})
	default:
		h.marks.add(Mark{At: since, Kind: ScheduleLost, Text: "Redis was lost"})
	}
}

func (h *History) watchAlertsLocked(now *State, at int64) {
	mark := func(a *Alert, at int64, kind Kind, text string) Mark {
		return Mark{At: at, Kind: kind, Text: text, VHost: a.VHost, Queue: a.Queue, About: a.Key}
	}
	was := h.known.Firing
	h.known.Firing = make(map[string]Alert, len(now.Firing))
	var begun, over []Mark
	for _, a := range now.Firing {
		_, before := was[a.Key]
		if !before && !a.Minor {
			begun = append(begun, mark(&a, a.Since.UnixMilli(), AlertFired, a.Text))
		}
		if before || !a.Minor {
			h.known.Firing[a.Key] = a
		}
	}
	for key, a := range was {
		if _, still := h.known.Firing[key]; !still {
			ended, known := now.Over[key]
			if !known {
				ended = Alert{Text: a.Text, Since: time.UnixMilli(at)}
			}
			over = append(over, mark(&a, ended.Since.UnixMilli(), AlertOver, "Over: "+ended.Text))
		}
	}
	h.marks.addTogether(begun, "%d more incidents")
	h.marks.addTogether(over, "%d more incidents are over")
}

// watchClientsLocked marks versions that were not connected in the last day, of applications that were.
func (h *History) watchClientsLocked(clients []Client, at int64) {
	var found []Mark
	if h.known.Clients == nil {
		h.known.Clients = make(map[string]map[string]int64)
	}
	for _, c := range clients {
		key, name := c.Name+"\x00"+c.User, c.Name
		if c.User != "" {
			name += " of the user " + c.User
		}
		of := h.known.Clients[key]
		if of == nil {
			if len(h.known.Clients) >= maxClients {
				continue
			}
			of = make(map[string]int64)
			h.known.Clients[key] = of
		}
		_, known := of[c.Version]
		if !known && len(of) >= maxVersions && at-of[oldest(of)] < crowded {
			continue
		}
		if !known && len(of) > 0 {
			before := slices.MaxFunc(slices.Sorted(maps.Keys(of)), func(a, b string) int { return cmp.Compare(of[a], of[b]) }) // was connected last
			text := fmt.Sprintf("%s connects in version %s, before it in %s", name, c.Version, before)
			found = append(found, Mark{At: at * 1000, Kind: Deployed, Text: text, About: c.Name})
		}
		if of[c.Version] = at; len(of) > maxVersions {
			delete(of, oldest(of))
		}
	}
	remember := int64(keep.Seconds())
	if len(h.known.Clients) >= maxClients {
		remember = fullFor
	}
	for name, of := range h.known.Clients {
		maps.DeleteFunc(of, func(_ string, last int64) bool { return at-last > remember })
		if len(of) == 0 {
			delete(h.known.Clients, name)
		}
	}
	h.marks.addTogether(found, "%d more applications connect in a new version")
}

// oldest is the version that has not been connected for the longest time.
func oldest(of map[string]int64) string {
	return slices.MinFunc(slices.Sorted(maps.Keys(of)), func(a, b string) int { return cmp.Compare(of[a], of[b]) })
}
