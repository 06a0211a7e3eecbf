package commands

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/node"
	"curfew/integration/pages"
)

// TestPagesNameRealCommands: what the pages have people type are commands, arguments and flags that exist. In a sentence, a command may
// stand without its arguments.
func TestPagesNameRealCommands(t *testing.T) {
	all, err := pages.All("../../..")
	require.NoError(t, err)
	inBlocks, inSentences := 0, 0
	for _, page := range all {
		variables := map[string]string{}
		for _, block := range page.Blocks {
			text := block.Text
			if block.Language == "console" {
				text = pages.Typed(text)
			} else if block.Language != "sh" {
				continue
			}
			script, err := pages.ParseScript(text, variables)
			require.NoError(t, err, "%s:%d", page.Path, block.Line)
			for _, c := range script.Commands {
				if args := arguments(c.Words); args != nil {
					inBlocks++
					where := fmt.Sprintf("%s:%d", page.Path, block.Line+c.Line-1)
					t.Run(where, func(t *testing.T) { holdCommand(t, args, false) })
				}
			}
		}
		for _, span := range page.Spans {
			if !strings.HasPrefix(span.Text, "curfew ") {
				continue
			}
			command, _, _ := strings.Cut(strings.ReplaceAll(span.Text, "<", "["), "[") // of a form, what stands before its arguments
			script, err := pages.ParseScript(command, map[string]string{})
			require.NoError(t, err, "%s:%d", page.Path, span.Line)
			inSentences++
			t.Run(fmt.Sprintf("%s:%d", page.Path, span.Line), func(t *testing.T) { holdCommand(t, script.Commands[0].Words[1:], true) })
		}
	}
	t.Logf("commands in blocks: %d, in sentences: %d", inBlocks, inSentences)
	assert.Greater(t, inBlocks, 50)
}

// arguments are those of the curfew that a command runs, itself or by another program (docker exec, sudo); nil if it runs none.
func arguments(words []string) []string {
	for i, word := range words {
		program := i == 0 || slices.Contains([]string{"docker", "kubectl", "podman", "sudo"}, words[0]) && (word == "/curfew" || words[i-1] == "--" || words[i-1] == "sudo")
		if program && path.Base(word) == "curfew" {
			return words[i+1:]
		}
	}
	return nil
}

// holdExample parses the commands of a line.
func holdExample(t *testing.T, line string) {
	t.Helper()
	script, err := pages.ParseScript(line, map[string]string{})
	require.NoError(t, err, line)
	for _, c := range script.Commands {
		if args := arguments(c.Words); args != nil {
			holdCommand(t, args, false)
		}
	}
}

// holdCommand parses a command line. One that is only named need not have its arguments.
func holdCommand(t *testing.T, args []string, named bool) {
	t.Helper()
	root := rootCommand(node.Build{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	c, rest, err := root.Find(args)
	require.NoError(t, err, "%q", args)
	if err := c.ParseFlags(rest); !errors.Is(err, pflag.ErrHelp) {
		require.NoError(t, err, "%q", args)
	}
	given := c.Flags().Args()
	if c.HasSubCommands() {
		assert.Empty(t, given, "%q: there is no such command", args)
	}
	if !named || len(given) > 0 {
		assert.NoError(t, c.ValidateArgs(given), "%q", args)
	}
}
