package alert

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
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

// prepare checks a silence and makes its patterns.
func (one *Silence) prepare(now time.Time) error {
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
	one.vhost, one.queue = newPattern(one.VHost), newPattern(one.Queue)
	return nil
}

func (one *Silence) covers(k key) bool {
	return (one.Event == "" || kinds[k.kind].event == one.Event) &&
		one.vhost.matches(k.vhost) && one.queue.matches(k.queue)
}

// silences are those in force. Safe for concurrent use.
type silences struct {
	dir string // empty: they end with the process

	changing sync.Mutex // held while they change; taken before mu

	mu   sync.Mutex // leaf
	list []*Silence
}

// cover reports whether an alert is silenced.
func (s *silences) cover(k key, now time.Time) bool {
	if int(k.kind) >= ruled {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.list, func(one *Silence) bool { return now.Before(one.ExpiresAt) && one.covers(k) })
}

// load reads what saveLocked wrote, except for what has expired. A damaged file is set aside and
// named in the log, and no silence is in force.
func (s *silences) load(log *zap.Logger) error {
	if s.dir == "" {
		return nil
	}
	path := filepath.Join(s.dir, silenceFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("alert: silences: %w", err)
	}
	var list []*Silence
	if err := json.Unmarshal(data, &list); err != nil {
		log.Error("the file of silences is damaged and was set aside; no silence is in force, so make them again",
			zap.String("file", path+".damaged"), zap.Error(err))
		if err := os.Rename(path, path+".damaged"); err != nil {
			return fmt.Errorf("alert: silences: %w", err)
		}
		return nil
	}
	for _, one := range list {
		if one.prepare(time.Now()) == nil {
			s.list = append(s.list, one)
		}
	}
	return nil
}

// saveLocked replaces the file. It is called with changing held.
func (s *silences) saveLocked(list []*Silence) error {
	if s.dir == "" {
		return nil
	}
	data, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, silenceFile)
	if err := writeSynced(path+".new", data); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
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
	one.ID, one.CreatedAt = newID(), now.UTC()
	one.ExpiresAt = one.ExpiresAt.UTC()
	if err := one.prepare(now); err != nil {
		return one, err
	}
	s := a.silences
	s.changing.Lock()
	defer s.changing.Unlock()
	list := s.active()
	if len(list) >= maxSilences {
		return one, errFull
	}
	return one, s.replaceLocked(append(list, &one))
}

// EndSilence ends a silence early; false if there is none with that ID.
func (a *Alerts) EndSilence(id string) (bool, error) {
	s := a.silences
	s.changing.Lock()
	defer s.changing.Unlock()
	list := s.active()
	rest := slices.DeleteFunc(slices.Clone(list), func(one *Silence) bool { return one.ID == id })
	if len(rest) == len(list) {
		return false, nil
	}
	return true, s.replaceLocked(rest)
}

// Silences lists the silences in force, the first to expire first.
func (a *Alerts) Silences() []Silence {
	list := []Silence{}
	for _, one := range a.silences.active() {
		list = append(list, *one)
	}
	return list
}

// active are the silences that have not expired, the first to expire first.
func (s *silences) active() (list []*Silence) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.list {
		if now.Before(one.ExpiresAt) {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b *Silence) int {
		return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// replaceLocked saves list and puts it in force. It is called with changing held.
func (s *silences) replaceLocked(list []*Silence) error {
	if err := s.saveLocked(list); err != nil {
		return fmt.Errorf("%w: %w", ErrNotSaved, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
	return nil
}

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
