package management_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker"
)

// TestTheOldNodeCheckTellsOfAlarms with status 200; the one of today has 503.
func TestTheOldNodeCheckTellsOfAlarms(t *testing.T) {
	x := startWith(t, broker.Options{MemoryLimit: 1 << 30, MemoryInUse: func() int64 { return 2 << 30 }})
	require.Eventually(t, func() bool { memory, _ := x.b.Alarm.Low(); return memory }, time.Minute, time.Millisecond)
	x.ask("GET", "/api/healthchecks/node", nil).is(200, `{"status":"failed","reason":"resource alarm(s) in effect:[memory]"}`)
	x.ask("GET", "/api/health/checks/alarms", nil).is(503, "")
}
