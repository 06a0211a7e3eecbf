package management_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestProtectedVirtualHosts: they stay until the protection is lifted, and a document has it.
func TestProtectedVirtualHosts(t *testing.T) {
	x := start(t)
	x.ask("PUT", "/api/vhosts/v", nil).is(201, "")
	x.ask("POST", "/api/vhosts/v/deletion/protection", nil).is(204, "")
	x.ask("GET", "/api/vhosts/v?columns=protected_from_deletion", nil).is(200, `{"protected_from_deletion":true}`)
	x.ask("PUT", "/api/vhosts/v", `{"description":"changed"}`).is(204, "")
	x.ask("POST", "/api/definitions", `{"vhosts":[{"name":"v"}]}`).is(204, "")
	x.ask("DELETE", "/api/vhosts/v", nil).is(412, "")
	definitions := x.ask("GET", "/api/definitions", nil).body
	assert.Contains(t, definitions, `"protected_from_deletion":true`)
	x.ask("DELETE", "/api/vhosts/v/deletion/protection", nil).is(204, "")
	x.ask("POST", "/api/definitions", definitions).is(204, "")
	x.ask("DELETE", "/api/vhosts/v", nil).is(412, "")
	x.ask("DELETE", "/api/vhosts/v/deletion/protection", nil).is(204, "")
	x.ask("DELETE", "/api/vhosts/v", nil).is(204, "")
	x.ask("POST", "/api/vhosts/v/deletion/protection", nil).is(404, "")
}
