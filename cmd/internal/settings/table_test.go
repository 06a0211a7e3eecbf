package settings

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// README.md's tables of variables are those that `curfew config --markdown` prints.
func TestReadmeListsEveryVariable(t *testing.T) {
	content, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(content), "<!-- config -->\n")
	tables, _, ended := strings.Cut(after, "<!-- /config -->")
	require.True(t, found && ended, "README.md has to have the tables between <!-- config --> and <!-- /config -->")
	var want strings.Builder
	require.NoError(t, WriteMarkdown(&want))
	assert.Equal(t, want.String(), tables, "put there what `curfew config --markdown` prints")
}
