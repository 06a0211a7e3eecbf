package operate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStorage is told in words, on pages and by commands.
func TestStorage(t *testing.T) {
	for text, s := range map[string]State{
		"memory only: for tests": {ManualClock: true},
		"memory only: a restart loses every message; set CURFEW_DATA_DIR (a warning)": {},
		"on disk: /data":               {DataDir: "/data", DiskFree: -1},
		"on disk: /data, 0 B free":     {DataDir: "/data"},
		"on disk: /data, 1.5 GiB free": {DataDir: "/data", DiskFree: 3 << 29},
		"on disk: /data; the folder was empty at this start: if Curfew had run before, its volume is not mounted or CURFEW_DATA_DIR has changed": {
			DataDir: "/data", DiskFree: -1, NewFolder: true,
		},
	} {
		where, more, warns := s.Storage()
		if warns {
			more += " (a warning)"
		}
		require.Equal(t, text, where+": "+more)
	}
}
