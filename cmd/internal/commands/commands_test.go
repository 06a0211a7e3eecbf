package commands

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"curfew/cmd/internal/node"
	"curfew/integration/pages"
	"curfew/integration/testenv"
)

// scratch is a folder for the built binary.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "curfew-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/alexedwards/scs/v2/memstore.(*MemStore).startCleanup"), goleak.Cleanup(func(code int) {
		os.RemoveAll(scratch)
		os.Exit(code)
	}))
}

var setenv = testenv.Setenv

// runCommand runs one command line in this process.
func runCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = Run(t.Context(), node.Build{Version: "v1.2.3", Revision: "abc-dirty", CommitTime: "2030-01-02T03:04:05Z"}, args, &out, &errOut)
	return code, out.String(), errOut.String()
}

// TestWithoutACommand: whoever types the name alone sees the help, and no broker starts.
func TestWithoutACommand(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, errOut := runCommand(t)
	assert.Zero(t, code, errOut)
	for _, text := range []string{`"curfew serve" runs it`, "Usage:", "Available Commands:", "\n  serve "} {
		assert.Contains(t, out, text)
	}
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Empty(t, files)
}

func TestVersion(t *testing.T) {
	for _, name := range []string{"version", "--version"} {
		code, out, _ := runCommand(t, name)
		assert.Zero(t, code)
		assert.Equal(t, "curfew v1.2.3 "+runtime.Version()+" abc-dirty\n", out)
	}
	code, out, _ := runCommand(t, "version", "-o", "json")
	assert.Zero(t, code)
	assert.JSONEq(t, `{"version": "v1.2.3", "commit": "abc", "commit_time": "2030-01-02T03:04:05Z", "dirty": true,
		"go": "`+runtime.Version()+`", "platform": "`+runtime.GOOS+"/"+runtime.GOARCH+`"}`, out)
	code, _, errOut := runCommand(t, "version", "-o", "yaml")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errOut, "table or json")
}

// TestInjectedImage: the sidecar's image is that of the release, whose tag has no v.
func TestInjectedImage(t *testing.T) {
	for version, want := range map[string]string{"v1.2.3": "curfew:1.2.3", "devel": "curfew:devel"} {
		assert.Equal(t, want, injectCommand(version).Flag("image").DefValue)
	}
}

func TestWrongCommandLines(t *testing.T) {
	for text, args := range map[string][]string{
		`unknown command "srve"`:     {"srve"},
		"unknown flag: --port":       {"serve", "--port", "1"},
		`version takes no arguments`: {"version", "now"},
		`unknown command "check"`:    {"store", "check"},
		"store verify takes one":     {"store", "verify", "a", "b"},
		"store repair takes one":     {"store", "repair", "a", "b"},
		"unknown flag: --json":       {"--json"},
	} {
		code, _, errOut := runCommand(t, args...)
		assert.Equal(t, exitUsage, code, "%v", args)
		assert.Contains(t, errOut, text)
	}
}

// TestEveryCommandHasAnExample: a command with an argument or a flag of its own has an example, with arguments and
// flags that exist.
func TestEveryCommandHasAnExample(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		if !c.HasSubCommands() && (c.HasLocalFlags() || strings.Contains(c.Use, "<")) {
			assert.Contains(t, c.Example, c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			holdExample(t, strings.TrimSpace(line))
		}
	}
	visit(Tree(node.Build{}))
	show, _, err := Tree(node.Build{}).Find([]string{"dlq", "show"})
	require.NoError(t, err)
	assert.Contains(t, show.Example, "--raw", "its own example")
}

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
	root := Tree(node.Build{})
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
