package deadline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
)

// timeline is the clock as one run passes it to the next, kept in the data
// directory, so that deadlines mean the same before and after a restart:
//
//   - On the same boot of the machine the clock continues by uptime, even if the wall
//     clock was changed. It is set back by the 50 µs by which two processes may read
//     uptime differently (a restart takes longer), so a deadline that the last run set
//     is not early in this one.
//   - After a reboot it is the wall clock, but not before the time at which the last run
//     was last alive: a wall clock that was set back makes deadlines late by at most the
//     time the machine was down. One that was set forward looks the same as a long time
//     without power, and is trusted.
//   - If no restored message has a deadline, it is the wall clock in any case: nothing
//     can be early or late.
//
// A running clock is not slewed towards the wall clock: a faster one would make deadlines
// early, and a slower one would make each time to live longer than requested. Where the two
// clocks differ, times that users give and see are converted (KeptClock.Instant,
// KeptClock.UnixMillis).
type timeline struct {
	Boot   string `json:"boot"`   // the boot the offset belongs to
	Offset int64  `json:"offset"` // Unix ns at uptime zero
	Alive  int64  `json:"alive"`  // Unix ns of the clock when written
}

const (
	timelineFile = "clock"
	// timelineEvery is how often the run records that it is alive. That is not synced:
	// if a power failure loses it, deadlines are late at worst.
	timelineEvery = 5 * time.Second
)

// resumed is the timeline of a new run after the one with timeline t.
func (t timeline) resumed(boot string, wall, up int64) timeline {
	if boot != "" && boot == t.Boot {
		t.Offset -= elapsedError
		return t
	}
	return timeline{Boot: boot, Offset: max(wall, t.Alive) - up, Alive: t.Alive}
}

// ContinueClock continues the clock kept in dir, or starts a new one if no restored message has a deadline.
// keep records it there until quit is closed.
func ContinueClock(dir string, anyDeadline bool, log *zap.Logger) (k *KeptClock, keep func(quit <-chan struct{}), err error) {
	path := filepath.Join(dir, timelineFile)
	saved, err := readTimeline(path)
	if err != nil {
		return nil, nil, err
	}
	t := timeline{Boot: bootID(), Offset: time.Now().UnixNano() - uptime().Nanoseconds()}
	if anyDeadline {
		t = saved.resumed(t.Boot, time.Now().UnixNano(), uptime().Nanoseconds())
	}
	k = carried(t.Offset)
	k.LastRun = Instant(t.Alive / int64(time.Microsecond))
	if off := k.Offset().Round(time.Second); off != 0 {
		log.Warn("the wall clock was changed while the machine was up, or set back; deadlines continue by elapsed time", zap.Duration("ahead_of_wall", off))
	}
	if err := t.write(path, k.Clock()); err != nil { // the disk may be full, and consumers can make room
		log.Warn("clock not saved; after another restart deadlines may be late or early by a step of the wall clock", zap.Error(err))
	}
	return k, func(quit <-chan struct{}) { t.keep(path, k.Clock, log, quit) }, nil
}

// readTimeline returns the zero timeline if none is saved.
func readTimeline(path string) (t timeline, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		return t, fmt.Errorf("clock of the last run in %s: %w; remove the file to go by the wall clock", path, err)
	}
	return t, nil
}

// write replaces the file, so that a killed process leaves the old one or the new one.
func (t timeline) write(path string, now int64) error {
	t.Alive = now
	data, err := json.Marshal(t)
	if err == nil {
		err = os.WriteFile(path+".tmp", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		return fmt.Errorf("save clock: %w", err)
	}
	return nil
}

// keep records every timelineEvery that the run is alive, and once more at its end.
func (t timeline) keep(path string, now Clock, log *zap.Logger, quit <-chan struct{}) {
	ticks := time.NewTicker(timelineEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-quit:
		}
		if err := t.write(path, now()); err != nil {
			log.Warn("clock not saved; after a reboot deadlines may be late", zap.Error(err))
		}
		select {
		case <-quit:
			return
		default:
		}
	}
}
