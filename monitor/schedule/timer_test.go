package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTimersTickAndNeverEarly(t *testing.T) {
	for name, newTimer := range map[string]func() (Timer, error){
		"runtime": runtimeTimer, "precise": PreciseTimer,
	} {
		t.Run(name, func(t *testing.T) {
			timer, err := newTimer()
			require.NoError(t, err)
			defer timer.Stop()
			timer.Reset(time.Hour) // replaced below
			select {               // a tick left over from the start
			case <-timer.C:
			default:
			}
			for _, wait := range []time.Duration{time.Microsecond, 300 * time.Microsecond, 3 * time.Millisecond} {
				started := time.Now()
				timer.Reset(wait)
				<-timer.C
				assert.GreaterOrEqual(t, time.Since(started), wait)
			}
		})
	}
}
