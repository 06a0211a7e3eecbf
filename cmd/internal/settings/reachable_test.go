package settings

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestReachable(t *testing.T) {
	for addr, want := range map[string]string{
		":1": "127.0.0.1:1", "0.0.0.0:1": "127.0.0.1:1", "[::]:1": "127.0.0.1:1",
		"127.0.0.1:1": "127.0.0.1:1", "[fe80::1]:1": "[fe80::1]:1", "host:1": "host:1",
	} {
		assert.Equal(t, want, Reachable(addr))
	}
}
