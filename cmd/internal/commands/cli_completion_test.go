package commands

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCompletion(t *testing.T) {
	code, out, _ := runCommand(t, "completion", "bash")
	assert.Zero(t, code)
	assert.Contains(t, out, "curfew")
	r := startRunning(t)
	r.dead(0)
	for _, c := range []struct{ line, want string }{
		{"dlq replay", "orders\norders.dead\n:4\n"},
		{"queue show", "orders\norders.dead\n:4\n"},
		{"deadlines fire", "orders\norders.dead\n:4\n"},
		{"dlq import orders.dead", ":0\n"}, // a file
		{"dlq replay orders --ttl", "fresh\nremaining\nnone\n:4\n"},
		{"audit search --path", "eager\nindex\nlazy\nrequeue\nmanual\nscheduled\n:4\n"},
		{"status -o", "table\njson\n:4\n"},
	} {
		_, out, _ := runCommand(t, slices.Concat([]string{"__complete"}, r.flags, strings.Fields(c.line), []string{""})...)
		assert.Equal(t, c.want, out, c.line)
	}
	_, filters, _ := runCommand(t, slices.Concat([]string{"__complete"}, r.flags, []string{"dlq", "search", "orders", "--filter", `reason == "expired" && died > ag`})...)
	assert.Equal(t, "reason == \"expired\" && died > ago\tthe instant so long ago: h, m and s, or days as 24h\n:6\n", filters)
}
