package deadline

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestCommand: a shell and the command line read each name as it is.
func TestCommand(t *testing.T) {
	for _, c := range []struct{ want, name string }{
		{"curfew queue show a-b:c --vhost /", "a-b:c"},
		{"curfew queue show 'it'\\''s' --vhost /", "it's"},
		{"curfew queue show '$(x)' --vhost /", "$(x)"},
		{"curfew queue show '' --vhost /", ""},
		{"curfew queue show --vhost / -- -drop", "-drop"},
	} {
		assert.Equal(t, c.want, Command("curfew queue show", []string{c.name}, "--vhost", "/"))
	}
	assert.Equal(t, "curfew bind --vhost / -- x -q", Command("curfew bind", []string{"x", "-q"}, "--vhost", "/"))
}
