package queues

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/cli"
)

func TestIsTruncated(t *testing.T) {
	assert.False(t, isTruncated("YWJj", "base64", 3))
	assert.False(t, isTruncated("YWI=", "base64", 2))
	assert.True(t, isTruncated("YWI=", "base64", 3))
}

// TestBodiesInTables: a body is printed as it is, but control characters are escaped.
func TestBodiesInTables(t *testing.T) {
	var out strings.Builder
	p := cli.Printer{}
	require.NoError(t, p.Print(&out, nil, []string{"BODY"}, [][]string{{bodyCell("{\"a\": \"\\\"\"}\n\x1b", "string")}, {bodyCell("AA==", "base64")}}))
	assert.Equal(t, "BODY\n{\"a\": \"\\\"\"}\\n\\x1b\n(base64) AA==\n", out.String())
}
