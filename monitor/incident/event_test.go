package incident

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServerNamedQueuesLeaveRoom: what expires in reply queues that come and go hides no loss in a queue that stays.
func TestServerNamedQueuesLeaveRoom(t *testing.T) {
	all := tallies{all: map[tallyKey]*Tally{}}
	for i := range 2 * maxTallies {
		all.record(missed(fmt.Sprint(serverNamed, i), 1))
	}
	all.record(missed("payments", 7))
	require.EqualValues(t, 7, all.all[tallyKey{Expired, "/", "payments"}].Count)
	require.EqualValues(t, maxTallies/2*3, all.all[tallyKey{Expired, "/", serverNamed + "*"}].Count)
}
