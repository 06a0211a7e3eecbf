package commands

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	codeSpan   = regexp.MustCompile("`curfew [^`\n]+`")
)

// TestRunbooksNameRealCommands: what the runbooks have people type are commands, arguments and flags that exist.
func TestRunbooksNameRealCommands(t *testing.T) {
	pages, err := filepath.Glob("../../../deploy/runbooks/*.md")
	require.NoError(t, err)
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		name := filepath.Base(page)
		assert.Zero(t, strings.Count(string(text), "```")-2*len(shellBlock.FindAll(text, -1)), "%s has a block that is not marked sh", name)
		var lines []string
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			lines = append(lines, strings.Split(block[1], "\n")...)
		}
		for _, span := range codeSpan.FindAllString(shellBlock.ReplaceAllString(string(text), ""), -1) {
			lines = append(lines, strings.Trim(span, "`"))
		}
		for _, line := range lines {
			if strings.HasPrefix(line, "curfew ") {
				found++
				t.Run(name, func(t *testing.T) { holdExample(t, line) })
			}
		}
	}
	assert.Greater(t, found, len(pages))
}
