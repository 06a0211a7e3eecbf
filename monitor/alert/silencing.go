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
	"time"
	"unicode/utf8"

	"go.uber.org/zap"
)

const (
	// maxSilences bounds the silences there are at once.
	maxSilences = 1000
	// maxSilence bounds how long one lasts, and maxText what it says.
	maxSilence = 366 * 24 * time.Hour
	maxText    = 1024
	// silenceFile is where silences are kept.
	silenceFile = "alert-silences.json"
)

// Muting keeps alerts from being told until an instant. What was told before is still
// told to be over.
type Muting struct {
	ID        string    `json:"id"`
	Event     string    `json:"event,omitempty"` // as in rules; empty: every event
	VHost     string    `json:"vhost,omitempty"` // pattern, as in rules; empty: all
	Queue     string    `json:"queue,omitempty"` // likewise
	Peer      string    `json:"peer,omitempty"`  // the silent instance, likewise
	Author    string    `json:"author,omitempty"`
	Comment   string    `json:"comment,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`

	vhost, queue, peer pattern
}

// prepare checks m and makes its patterns.
func (m *Muting) prepare(now time.Time) error {
	if _, known := kindOf(m.Event); m.Event != "" && !known {
		return fmt.Errorf("event: there is no event %q; it takes %s", m.Event, eventNames())
	}
	for _, text := range []string{m.VHost, m.Queue, m.Peer, m.Author, m.Comment} {
		if len(text) > maxText {
			return fmt.Errorf("a text is longer than %d bytes", maxText)
		}
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q is no UTF-8", text)
		}
	}
	switch life := m.ExpiresAt.Sub(now); {
	case m.ExpiresAt.IsZero():
		return errors.New("say when it ends: expires_at takes an instant such as 2006-01-02T15:04:05Z, duration a time such as 2h")
	case life <= 0:
		return errors.New("expires_at: it lies in the past")
	case life > maxSilence:
		return fmt.Errorf("expires_at: it is more than %d days away", int(maxSilence.Hours()/24))
	}
	m.vhost, m.queue, m.peer = newPattern(m.VHost), newPattern(m.Queue), newPattern(m.Peer)
	return nil
}

func (m *Muting) covers(k key) bool {
	return (m.Event == "" || kinds[k.kind].event == m.Event) &&
		m.vhost.matches(k.vhost) && m.queue.matches(k.queue) && m.peer.matches(k.peer)
}

// silences are those in force. Guarded by Alerts.mu, but save.
type silences struct {
	dir  string // empty: they end with the process
	list []*Muting
}

// cover says whether an alert is silenced.
func (s *silences) cover(k key, now time.Time) bool {
	if int(k.kind) >= ruled {
		return false
	}
	return slices.ContainsFunc(s.list, func(m *Muting) bool { return now.Before(m.ExpiresAt) && m.covers(k) })
}

// load reads what save wrote, without what has expired. A file that save cannot have
// written is set aside and named in the log: there are no silences then.
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
	var list []*Muting
	if err := json.Unmarshal(data, &list); err != nil {
		log.Error("the file of silences is damaged and was set aside, no silence is in force: make them again",
			zap.String("file", path+".damaged"), zap.Error(err))
		if err := os.Rename(path, path+".damaged"); err != nil {
			return fmt.Errorf("alert: silences: %w", err)
		}
		return nil
	}
	for _, m := range list {
		if m.prepare(time.Now()) == nil {
			s.list = append(s.list, m)
		}
	}
	return nil
}

// save replaces the file.
func (s *silences) save(list []*Muting) error {
	if s.dir == "" {
		return nil
	}
	data, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("alert: silences: %w", err)
	}
	path := filepath.Join(s.dir, silenceFile)
	if err := writeSynced(path+".new", data); err != nil {
		return fmt.Errorf("alert: silences: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("alert: silences: %w", err)
	}
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

// errFull says that there are too many silences.
var errFull = fmt.Errorf("there are %d silences already", maxSilences)

// Mute adds a silence; its ID and CreatedAt are set here. An error says that a field is
// not allowed, that there are too many, or that it could not be saved.
func (a *Alerts) Mute(m Muting) (Muting, error) {
	now := time.Now()
	m.ID, m.CreatedAt = newID(), now.UTC()
	m.ExpiresAt = m.ExpiresAt.UTC()
	if err := m.prepare(now); err != nil {
		return m, err
	}
	a.saving.Lock()
	defer a.saving.Unlock()
	list := a.mutings()
	if len(list) >= maxSilences {
		return m, errFull
	}
	return m, a.replaceSilences(append(list, &m))
}

// Unmute ends a silence early; false if there is none with that ID.
func (a *Alerts) Unmute(id string) (bool, error) {
	a.saving.Lock()
	defer a.saving.Unlock()
	list := a.mutings()
	rest := slices.DeleteFunc(slices.Clone(list), func(m *Muting) bool { return m.ID == id })
	if len(rest) == len(list) {
		return false, nil
	}
	return true, a.replaceSilences(rest)
}

// Mutings lists the silences in force, the first to expire first.
func (a *Alerts) Mutings() []Muting {
	list := []Muting{}
	for _, m := range a.mutings() {
		list = append(list, *m)
	}
	return list
}

func (a *Alerts) mutings() (list []*Muting) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.silences.list {
		if now.Before(m.ExpiresAt) {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b *Muting) int {
		return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// replaceSilences saves list and puts it in force. Callers hold saving.
func (a *Alerts) replaceSilences(list []*Muting) error {
	if err := a.silences.save(list); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.silences.list = list
	return nil
}

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
