package queues

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/cli"
)

// TestBodiesInTables: a body is printed as it is, but control characters are escaped.
func TestBodiesInTables(t *testing.T) {
	var out strings.Builder
	p := cli.Printer{}
	require.NoError(t, p.Print(&out, nil, []string{"BODY"}, [][]string{{bodyCell("{\"a\": \"\\\"\"}\n\x1b", "string")}, {bodyCell("AA==", "base64")}}))
	assert.Equal(t, "BODY\n{\"a\": \"\\\"\"}\\n\\x1b\n(base64) AA==\n", out.String())
}
