package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPeerGone(t *testing.T) {
	const heartbeat = 10 * time.Second
	for name, c := range map[string]struct {
		peerState
		heartbeat time.Duration
		gone      bool
	}{
		"fresh":                          {peerState{}, heartbeat, false},
		"reset":                          {peerState{reset: true}, heartbeat, true},
		"reset, no heartbeats":           {peerState{reset: true}, 0, true},
		"has just left":                  {peerState{left: true, sent: heartbeat - 1}, heartbeat, false},
		"has left":                       {peerState{left: true, sent: heartbeat}, heartbeat, true},
		"has just left, no heartbeats":   {peerState{left: true, sent: leftFor - 1}, 0, false},
		"has left, no heartbeats":        {peerState{left: true, sent: leftFor}, 0, true},
		"nearly silent":                  {peerState{sent: silence(heartbeat) - 1}, heartbeat, false},
		"silent":                         {peerState{sent: silence(heartbeat)}, heartbeat, true},
		"silent, but cannot send":        {peerState{sent: time.Hour, crowded: true}, heartbeat, false},
		"its host is silent as well":     {peerState{sent: time.Hour, answered: silence(heartbeat), crowded: true}, heartbeat, true},
		"nobody has to send a heartbeat": {peerState{sent: time.Hour, answered: time.Hour}, 0, false},
	} {
		assert.Equal(t, c.gone, c.peerState.gone(c.heartbeat) != nil, name)
	}
}
