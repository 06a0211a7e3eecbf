package schedule

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// preciseTimer ticks by a timer of the kernel, which the runtime waits for as for
// a socket: late by some ten microseconds, where the runtime's own timers round
// up to whole milliseconds. Time asleep (suspend) counts.
type preciseTimer struct {
	file  *os.File
	fd    int // of file: Fd would make it blocking
	ticks chan time.Time
	ended chan struct{}
}

// PreciseTimer returns a Timer that the kernel runs (timerfd_create(2)), for
// Options.NewTimer. Real time only: it does not follow a testing/synctest bubble.
func PreciseTimer() (Timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return Timer{}, fmt.Errorf("schedule: timerfd_create: %w", err)
	}
	t := &preciseTimer{
		file: os.NewFile(uintptr(fd), "timerfd"), fd: fd,
		ticks: make(chan time.Time, 1), ended: make(chan struct{}),
	}
	go t.run()
	return Timer{t.ticks, t.reset, t.stop}, nil
}

// run turns expirations into ticks until the file is closed.
func (t *preciseTimer) run() {
	defer close(t.ended)
	var expirations [8]byte
	for {
		if _, err := t.file.Read(expirations[:]); err != nil {
			return
		}
		select {
		case t.ticks <- time.Now():
		default:
		}
	}
}

func (t *preciseTimer) reset(d time.Duration) {
	once := unix.ItimerSpec{Value: unix.NsecToTimespec(max(d, 1).Nanoseconds())}
	if err := unix.TimerfdSettime(t.fd, 0, &once, nil); err != nil {
		panic("schedule: timerfd_settime: " + err.Error())
	}
}

func (t *preciseTimer) stop() {
	t.file.Close()
	<-t.ended
}
