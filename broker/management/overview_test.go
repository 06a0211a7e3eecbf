package management_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestTheClusterHasAnID that stays, is a global parameter, and is in no definitions.
func TestTheClusterHasAnID(t *testing.T) {
	x := start(t)
	id := x.ask("GET", "/api/global-parameters/internal_cluster_id", nil).is(200, "").object()["value"]
	assert.Regexp(t, "^rabbitmq-cluster-id-.{20,}$", id)
	assert.NotContains(t, x.ask("GET", "/api/definitions", nil).body, id)
}
