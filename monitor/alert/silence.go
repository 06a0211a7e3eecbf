package alert

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"
)

const (
	// maxSilences bounds the silences in force at once.
	maxSilences = 1000
	// maxSilence bounds how long one lasts, and maxText each of its texts.
	maxSilence = 366 * 24 * time.Hour
	maxText    = 1024
	// silenceFile is where silences are kept.
	silenceFile = "alert-silences.json"
)

// Silence suppresses notifications of matching alerts until an instant. The end of an alert
// is still sent if its beginning was.
type Silence struct {
	ID        string    `json:"id"`
	Event     string    `json:"event,omitempty"` // as in rules; absent: every event
	VHost     string    `json:"vhost,omitempty"` // pattern, as in rules; absent: all
	Queue     string    `json:"queue,omitempty"` // likewise
	Author    string    `json:"author,omitempty"`
	Comment   string    `json:"comment,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`

	vhost, queue pattern
}

// check returns what is wrong, or nil.
func (one *Silence) check(now time.Time) error {
	if _, known := kindOf(one.Event); one.Event != "" && !known {
		return fmt.Errorf("event: unknown event %q: want one of %s", one.Event, eventNames())
	}
	for _, text := range []string{one.VHost, one.Queue, one.Author, one.Comment} {
		if len(text) > maxText {
			return fmt.Errorf("a text is longer than %d bytes", maxText)
		}
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q is not UTF-8", text)
		}
	}
	switch life := one.ExpiresAt.Sub(now); {
	case one.ExpiresAt.IsZero():
		return errors.New("say when it ends: expires_at has an instant such as 2006-01-02T15:04:05Z, or duration a time such as 2h")
	case life <= 0:
		return errors.New("expires_at is in the past")
	case life > maxSilence:
		return fmt.Errorf("expires_at is more than %d days away", int(maxSilence.Hours()/24))
	}
	return nil
}

// compile makes the patterns.
func (one *Silence) compile() { one.vhost, one.queue = newPattern(one.VHost), newPattern(one.Queue) }

func (one *Silence) covers(k key) bool {
	return (one.Event == "" || kinds[k.kind].event == one.Event) &&
		one.vhost.matches(k.vhost) && one.queue.matches(k.queue)
}

// silences are those in force, the first to expire first. Safe for concurrent use.
type silences struct {
	path     string     // of their file; empty: they end with the process
	changing sync.Mutex // held while the list is replaced
	list     atomic.Pointer[[]Silence]
}

// active are the silences that have not expired.
func (s *silences) active() []Silence {
	now, list := time.Now(), []Silence{}
	if all := s.list.Load(); all != nil {
		for _, one := range *all {
			if now.Before(one.ExpiresAt) {
				list = append(list, one)
			}
		}
	}
	return list
}

// cover reports whether an alert is silenced.
func (s *silences) cover(k key, now time.Time) bool {
	all := s.list.Load()
	return all != nil && int(k.kind) < ruled &&
		slices.ContainsFunc(*all, func(one Silence) bool { return now.Before(one.ExpiresAt) && one.covers(k) })
}

// load reads what replaceLocked wrote, except for what has expired. A damaged file is set aside and
// named in the log, and no silence is in force.
func (s *silences) load(log *zap.Logger) error {
	if s.path == "" {
		return nil
	}
	data, err := os.ReadFile(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var list []Silence
	if err == nil && json.Unmarshal(data, &list) != nil {
		log.Error("the file of silences is damaged and was set aside; no silence is in force, so make them again", zap.String("file", s.path+".damaged"))
		list, err = nil, os.Rename(s.path, s.path+".damaged")
	}
	if err != nil {
		return fmt.Errorf("alert: silences: %w", err)
	}
	list = slices.DeleteFunc(list, func(one Silence) bool { return one.ExpiresAt.Before(time.Now()) })
	for i := range list {
		list[i].compile()
	}
	s.list.Store(&list)
	return nil
}

// replaceLocked saves list and puts it in force. It is called with changing held.
func (s *silences) replaceLocked(list []Silence) error {
	slices.SortFunc(list, func(a, b Silence) int { return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), cmp.Compare(a.ID, b.ID)) })
	if s.path != "" {
		data, err := json.MarshalIndent(list, "", "  ")
		if err == nil {
			err = writeSynced(s.path+".new", data)
		}
		if err == nil {
			err = os.Rename(s.path+".new", s.path)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotSaved, err)
		}
	}
	s.list.Store(&list)
	return nil
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// errFull: there are too many silences.
var errFull = fmt.Errorf("there are %d silences already", maxSilences)

// ErrNotSaved says that a change of the silences was not made, since their file could not be written.
var ErrNotSaved = errors.New("alert: the silences could not be saved")

// AddSilence adds a silence; its ID and CreatedAt are set here. An error says that a field is
// invalid, that there are too many silences, or ErrNotSaved.
func (a *Alerts) AddSilence(one Silence) (Silence, error) {
	now := time.Now()
	one.ID, one.CreatedAt, one.ExpiresAt = rand.Text()[:16], now.UTC(), one.ExpiresAt.UTC()
	if err := one.check(now); err != nil {
		return one, err
	}
	one.compile()
	s := a.silences
	s.changing.Lock()
	defer s.changing.Unlock()
	list := s.active()
	if len(list) >= maxSilences {
		return one, errFull
	}
	return one, s.replaceLocked(append(list, one))
}

// EndSilence ends a silence early; false if there is none with that ID.
func (a *Alerts) EndSilence(id string) (bool, error) {
	s := a.silences
	s.changing.Lock()
	defer s.changing.Unlock()
	list := s.active()
	rest := slices.DeleteFunc(slices.Clone(list), func(one Silence) bool { return one.ID == id })
	if len(rest) == len(list) {
		return false, nil
	}
	return true, s.replaceLocked(rest)
}

// Silences lists the silences in force, the first to expire first.
func (a *Alerts) Silences() []Silence { return a.silences.active() }
