package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIdentityInARefusal(t *testing.T) {
	for text, want := range map[string]string{
		"PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'curfew.tap.identity' in vhost '/': received the value " +
			"'curfew.tap.abc' of type 'longstr' but current is the value 'curfew.tap.xyz' of type 'longstr'": "xyz",
		"PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'curfew.tap.identity' in vhost '/': received the value " +
			"'curfew.tap.abc' of type 'longstr' but current is none": "",
		"PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'curfew.tap.identity' in vhost '/': received 'fanout' but current is 'topic'": "",
	} {
		require.Equal(t, want, identityIn(text), text)
	}
}
