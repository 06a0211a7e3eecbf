package deadline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// machineClocks are a machine's, in ns.
type machineClocks struct {
	wall, mono, up int64
	asked          int
}

func (m *machineClocks) run(d time.Duration) {
	m.wall, m.mono, m.up = m.wall+int64(d), m.mono+int64(d), m.up+int64(d)
}

// suspend does not count in the monotonic time.
func (m *machineClocks) suspend(d time.Duration) { m.wall, m.up = m.wall+int64(d), m.up+int64(d) }

func (m *machineClocks) elapsed() *elapsed {
	return newElapsed(func() (int64, int64) { return m.wall, m.mono }, func() int64 { m.asked++; return m.up })
}

func TestElapsedCountsSuspend(t *testing.T) {
	m := &machineClocks{wall: 1e18, mono: 5e9, up: 7e9}
	e := m.elapsed()
	for range 1000 {
		m.run(time.Second)
		assert.Equal(t, m.up, e.now())
	}
	assert.Equal(t, 1, m.asked, "the system is not asked while nothing happens")
	m.suspend(8 * time.Hour)
	assert.Equal(t, m.up, e.now(), "at the first look after it")
	m.suspend(time.Millisecond)
	m.run(time.Second)
	assert.Equal(t, m.up, e.now())
	assert.Equal(t, 3, m.asked)
}

func TestElapsedIgnoresTheWallClock(t *testing.T) {
	m := &machineClocks{wall: 1e18, up: 7e9}
	e := m.elapsed()
	for _, step := range []time.Duration{time.Hour, -24 * time.Hour, time.Millisecond} {
		m.wall += int64(step)
		m.run(time.Second)
		assert.Equal(t, m.up, e.now(), step)
	}
	asked := m.asked
	for range 100 { // slewed by 50 us a second
		m.wall += int64(50 * time.Microsecond)
		m.run(time.Second)
		assert.Equal(t, m.up, e.now())
	}
	assert.InDelta(t, 33, m.asked-asked, 2)
	m.wall -= int64(time.Hour)
	m.suspend(time.Hour - time.Second) // and the clock is set back during it
	assert.Equal(t, m.up, e.now())
}

// A slow answer of the system is not taken for a suspend, and nothing takes the clock back.
func TestElapsedNeverRunsBackwards(t *testing.T) {
	m := &machineClocks{wall: 1e18, up: 7e9}
	e := m.elapsed()
	last := e.now()
	for i := range 1000 {
		m.run(time.Millisecond)
		m.wall += int64(time.Second)
		slow := time.Duration(i) * time.Microsecond
		e.uptime = func() int64 {
			up := m.up
			m.run(slow)
			return up
		}
		now := e.now()
		assert.GreaterOrEqual(t, now, last)
		assert.LessOrEqual(t, now, m.up)
		last = now
	}
	e.uptime = func() int64 { return m.up }
	m.run(time.Second)
	assert.Equal(t, m.up, e.now(), "and nothing is left of it")
}

func TestElapsedIsUptime(t *testing.T) {
	e := newElapsed(processClocks(), func() int64 { return uptime().Nanoseconds() })
	for range 1000 {
		before := uptime().Nanoseconds()
		now := e.now()
		after := uptime().Nanoseconds()
		assert.GreaterOrEqual(t, now, before-elapsedSlack)
		assert.LessOrEqual(t, now, after+elapsedSlack)
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { e.now() }))
}

func TestElapsedKnowsTheWallClock(t *testing.T) {
	m := &machineClocks{wall: 1e18, mono: 5e9, up: 7e9}
	e := m.elapsed()
	check := func() {
		t.Helper()
		m.run(time.Second)
		asked := m.asked
		assert.Equal(t, e.now()-m.wall, e.asleep.Load()-e.ahead.Load())
		assert.LessOrEqual(t, m.asked-asked, 1)
	}
	check()
	m.wall += int64(12 * time.Hour)
	check()
	m.suspend(time.Hour)
	check()
	m.wall -= int64(36 * time.Hour)
	check()
}
