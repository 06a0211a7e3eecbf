package incident

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"curfew/broker/deadline"
)

const (
	maxWindows = 1000
	// maxWindow bounds how long a window or an acknowledgement lasts, and maxText each of its texts.
	maxWindow = 366 * 24 * time.Hour
	maxText   = 1024
	// keptFile is where incidents and windows are kept.
	keptFile = "incidents.json"
)

// Window is a time of maintenance: nobody is notified of incidents of the queues that match.
type Window struct {
	ID        string    `json:"id"`
	Condition string    `json:"condition,omitempty"` // absent: every one
	VHost     string    `json:"vhost,omitempty"`     // pattern, as in rules; absent: all
	Queue     string    `json:"queue,omitempty"`     // likewise
	Author    string    `json:"author,omitempty"`
	Comment   string    `json:"comment,omitempty"`
	From      time.Time `json:"from"`
	Until     time.Time `json:"until"`

	vhost, queue pattern
}

// check returns what is wrong, or nil.
func (w *Window) check(now time.Time) error {
	if w.Condition != "" && ConditionOf(w.Condition) == nil {
		return fmt.Errorf("unknown condition %q: see curfew incident rules --conditions", w.Condition)
	}
	if err := checkTexts(w.VHost, w.Queue, w.Author, w.Comment); err != nil {
		return err
	}
	if w.Until.IsZero() {
		return errors.New("say when it ends: until has an instant such as 2006-01-02T15:04:05Z, or duration a time such as 2h")
	}
	if err := checkUntil(w.Until, now); err != nil {
		return err
	}
	if !w.From.Before(w.Until) {
		return errors.New("it ends before it begins")
	}
	return nil
}

func checkTexts(texts ...string) error {
	for _, text := range texts {
		if len(text) > maxText {
			return fmt.Errorf("a text is longer than %d bytes", maxText)
		}
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q is not UTF-8", text)
		}
	}
	return nil
}

func checkUntil(until, now time.Time) error {
	switch left := until.Sub(now); {
	case left <= 0:
		return errors.New("until is in the past")
	case left > maxWindow:
		return fmt.Errorf("until is more than %d days away", int(maxWindow.Hours()/24))
	}
	return nil
}

// ErrNotSaved says that a change was not made, since the file could not be written.
var ErrNotSaved = errors.New("incident: the change could not be saved")

// ErrNotFound says that there is no such incident or window.
var ErrNotFound = errors.New("there is no such incident or maintenance window")

func notFound(id string) error {
	return fmt.Errorf("%w: %q; curfew incident ls and curfew incident maintenance list what there is", ErrNotFound, id)
}

// Acknowledge takes an incident over: nobody is notified of it any more, until the acknowledgement ends or the incident is over.
// Its At is set here. Errors: ErrNotFound, ErrNotSaved, or what is wrong with a.
func (a *Incidents) Acknowledge(id string, ack Ack) error {
	now := time.Now()
	ack.At = now.UTC()
	if err := checkTexts(ack.By, ack.Comment); err != nil {
		return err
	}
	if ack.Until != nil {
		if err := checkUntil(*ack.Until, now); err != nil {
			return err
		}
	}
	return a.change(id, func(i *incident) { i.Ack = &ack; i.note(now, "acknowledged by "+ack.By) })
}

// Unacknowledge ends an acknowledgement. Errors: ErrNotFound, ErrNotSaved.
func (a *Incidents) Unacknowledge(id, by string) error {
	return a.change(id, func(i *incident) { i.Ack = nil; i.note(time.Now(), "no longer acknowledged, says "+by) })
}

// change changes an open incident, and saves that.
func (a *Incidents) change(id string, change func(*incident)) error {
	a.Look()
	return a.saved(func(t *tracker) (undo func(), err error) {
		n := slices.IndexFunc(t.all, func(i *incident) bool { return i.open && i.ID == id })
		if n < 0 {
			return nil, notFound(id)
		}
		i := t.all[n]
		before := i.Incident
		change(i)
		i.Quiet = i.Ack != nil || t.maintainedLocked(i, time.Now())
		return func() { i.Incident = before }, nil
	})
}

// saved makes a change that is to be saved. If it cannot be, it is undone. There is one at a time: what is undone is put back as it was before.
func (a *Incidents) saved(change func(*tracker) (undo func(), err error)) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	t := a.tracker
	t.mu.Lock()
	undo, err := change(t)
	t.publishLocked()
	t.mu.Unlock()
	if err != nil {
		return err
	}
	if err = a.save(); err != nil {
		t.mu.Lock()
		undo()
		t.publishLocked()
		t.mu.Unlock()
	}
	return err
}

// AddWindow adds a maintenance window; its ID is set here, and From if it is zero. An error says that a field is invalid, that there are
// too many windows, or ErrNotSaved.
func (a *Incidents) AddWindow(w Window) (Window, error) {
	now := time.Now()
	if w.From.IsZero() {
		w.From = now
	}
	w.ID, w.From, w.Until = rand.Text()[:16], w.From.UTC(), w.Until.UTC()
	if err := w.check(now); err != nil {
		return w, err
	}
	w.vhost, w.queue = newPattern(w.VHost), newPattern(w.Queue)
	return w, a.changeWindows(func(list []Window) ([]Window, error) {
		if len(list) >= maxWindows {
			return nil, fmt.Errorf("there are %d maintenance windows already", maxWindows)
		}
		return append(list, w), nil
	})
}

// EndWindow ends a window early. Errors: ErrNotFound, ErrNotSaved.
func (a *Incidents) EndWindow(id string) error {
	return a.changeWindows(func(list []Window) ([]Window, error) {
		rest := slices.DeleteFunc(slices.Clone(list), func(w Window) bool { return w.ID == id })
		if len(rest) == len(list) {
			return nil, notFound(id)
		}
		return rest, nil
	})
}

func (a *Incidents) changeWindows(change func([]Window) ([]Window, error)) error {
	return a.saved(func(t *tracker) (undo func(), err error) {
		before := t.windows
		list, err := change(activeWindows(before))
		if err != nil {
			return nil, err
		}
		slices.SortFunc(list, func(a, b Window) int { return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.ID, b.ID)) })
		t.windows = list
		return func() { t.windows = before }, nil
	})
}

// Windows lists the maintenance windows that are not over, the first to end first.
func (a *Incidents) Windows() []Window { return activeWindows(a.tracker.view.Load().windows) }

func activeWindows(list []Window) []Window {
	now := time.Now()
	return slices.DeleteFunc(append([]Window{}, list...), func(w Window) bool { return !now.Before(w.Until) })
}

// kept is what the file has.
type kept struct {
	Open    []keptIncident `json:"open"`
	Recent  []keptIncident `json:"recent"`
	Windows []Window       `json:"windows"`
	Tallies []Tally        `json:"tallies"` // so that the number of messages in an incident goes on
}

// save writes the file, if there is a folder for it.
func (a *Incidents) save() error {
	if a.options.Dir == "" {
		return nil
	}
	a.saving.Lock()
	defer a.saving.Unlock()
	t := a.tracker
	t.mu.Lock()
	now := time.Now().UTC()
	k := kept{Recent: t.recent, Windows: t.windows, Tallies: a.tallies.expiries()}
	for _, i := range t.all {
		if i.open {
			if !i.restored {
				i.Until = now
			}
			i.Findings = slices.Collect(maps.Values(i.members))
			k.Open = append(k.Open, i.keptIncident)
		}
	}
	t.changed, t.savedAt = false, now
	t.mu.Unlock()
	err := deadline.ReplaceFile(filepath.Join(a.options.Dir, keptFile), func(to io.Writer) error {
		encoder := json.NewEncoder(to)
		encoder.SetIndent("", "  ")
		return encoder.Encode(k)
	})
	if err != nil {
		t.mu.Lock()
		t.changed, t.retryAt = true, now.Add(saveRetry)
		t.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrNotSaved, err)
	}
	return nil
}

// load reads what save wrote. A damaged file is set aside and named in the log.
func (a *Incidents) load() error {
	if a.options.Dir == "" {
		return nil
	}
	path := filepath.Join(a.options.Dir, keptFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var k kept
	if err == nil && json.Unmarshal(data, &k) != nil {
		a.log.Error("the file of incidents is damaged and was set aside: acknowledgements and maintenance windows are gone, make them again", zap.String("file", path+".damaged"))
		k, err = kept{}, os.Rename(path, path+".damaged")
	}
	if err != nil {
		return fmt.Errorf("incident: %w", err)
	}
	for i := range k.Windows {
		w := &k.Windows[i]
		w.vhost, w.queue = newPattern(w.VHost), newPattern(w.Queue)
	}
	a.tracker.windows, a.tracker.recent = activeWindows(k.Windows), k.Recent
	for _, one := range k.Open {
		if c := ConditionOf(one.Condition); c != nil {
			a.tracker.all = append(a.tracker.all, one.restore(c))
		}
	}
	a.tracker.publishLocked()
	for _, of := range k.Tallies {
		if of.Action == "parked" && of.Parked == 0 { // of an earlier version
			of.Parked = of.Count - of.Dropped
		}
		a.tallies.all[tallyKey{of.Kind, of.VHost, of.Queue}] = &of
	}
	return nil
}

// restore is the incident of an earlier run. It is over unless it is seen soon.
func (k keptIncident) restore(c *Condition) *incident {
	i := &incident{keptIncident: k, of: c, members: make(map[QueueName]Finding), left: make(map[string]bool), seen: k.Since, open: true, restored: true}
	for _, f := range k.Findings {
		f.Losing = time.Time{} // not in this run
		i.add(f, time.Now())
	}
	i.present = slices.SortedFunc(maps.Values(i.members), worstFirst)
	return i
}
