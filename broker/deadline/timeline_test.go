package deadline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTimelineOverARestart(t *testing.T) {
	const hour = int64(time.Hour)
	last := timeline{Boot: "a", Offset: 1000 * hour, Alive: 1010 * hour} // up for 10 hours
	now := func(next timeline, up int64) int64 { return next.Offset + up }
	for _, c := range []struct {
		name     string
		boot     string
		wall, up int64
		want     int64
	}{
		{"same boot", "a", 1011 * hour, 11 * hour, 1011*hour - elapsedError},
		{"same boot, wall an hour ahead: nothing is early", "a", 1012 * hour, 11 * hour, 1011*hour - elapsedError},
		{"same boot, wall an hour back: nothing is late", "a", 1010 * hour, 11 * hour, 1011*hour - elapsedError},
		{"rebooted", "b", 1011 * hour, hour / 2, 1011 * hour},
		{"rebooted, wall a day back: goes on from when it was alive", "b", 987 * hour, hour / 2, 1010 * hour},
		{"boot unknown", "", 1011 * hour, hour / 2, 1011 * hour},
	} {
		next := last.resumed(c.boot, c.wall, c.up)
		assert.Equal(t, c.want, now(next, c.up), c.name)
		assert.Equal(t, last.Alive, next.Alive, c.name)
	}
	assert.Equal(t, 5*hour, now(timeline{}.resumed("a", 5*hour, hour), hour), "the first run goes by the wall")
}
