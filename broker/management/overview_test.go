package management_test

import (
	"strings"
	"testing"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/stretchr/testify/assert"
)

// TestTheClusterHasAnID that stays, is a global parameter, and is in no definitions.
func TestTheClusterHasAnID(t *testing.T) {
	x := start(t)
	id := x.ask("GET", "/api/global-parameters/internal_cluster_id", nil).is(200, "").object()["value"]
	assert.Regexp(t, "^rabbitmq-cluster-id-.{20,}$", id)
	assert.NotContains(t, x.ask("GET", "/api/definitions", nil).body, id)
}

// TestAuthAttempts: logins are counted by protocol, right and wrong ones, and not by who tried.
func TestAuthAttempts(t *testing.T) {
	x := start(t)
	x.ask("GET", "/api/auth", nil).is(200, `{"oauth_enabled":false}`)
	x.ask("DELETE", "/api/auth/attempts/curfew@test", nil).is(204, "")
	x.dial()
	_, err := amqp091.Dial(strings.Replace(x.amqp, "guest:guest", "guest:wrong", 1))
	require.Error(t, err)
	x.askAs("guest", "wrong", "GET", "/api/whoami", nil).is(401, "")
	x.ask("GET", "/api/auth/attempts/curfew@test", nil).is(200, `[
		{"protocol":"amqp091","auth_attempts":2,"auth_attempts_succeeded":1,"auth_attempts_failed":1},
		{"protocol":"http","auth_attempts":2,"auth_attempts_succeeded":1,"auth_attempts_failed":1}]`)
	x.ask("GET", "/api/auth/attempts/curfew@test/source", nil).is(200, "[]")
	x.ask("GET", "/api/auth/attempts/other", nil).is(404, "")
	x.askAs("u-management", "p", "GET", "/api/auth/attempts/curfew@test", nil).is(401, "")
}
