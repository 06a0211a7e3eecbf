package pages

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// languages are the tags of blocks, each with what holds it. What is run is held by TestPages, what has a check by TestBlocks.
var languages = map[string]struct {
	run   []string // how to run the file behind these words; nil: not a program
	file  string   // its name if the page gives it none
	check func(t *testing.T, file, text string)
}{
	"sh":      {},
	"console": {},
	"text":    {}, // a picture, an answer, a form of a command: nothing to hold it to

	"python":     {run: []string{"python3"}, file: "program.py"},
	"javascript": {run: []string{"node"}, file: "program.js"},
	"php":        {run: []string{"php"}, file: "program.php"},
	"ruby":       {run: []string{"ruby"}, file: "program.rb"},
	"java":       {run: []string{"java", "-cp", "*"}, file: "Program.java"},
	"go":         {run: []string{"go", "run"}, file: "program.go"},
	"typescript": {}, // a shell block compiles and starts it
	"csharp":     {}, // neither Debian nor npm has .NET's SDK: the page says that it is untested

	"yaml":       {check: checkYAML},
	"json":       {check: checkJSON},
	"ini":        {check: checkINI},
	"xml":        {check: checkXML},
	"promql":     {check: checkPromQL},
	"dockerfile": {check: checkDockerfile},
}

// TestBlocks: each block has a language that is known, and is of that language.
func TestBlocks(t *testing.T) {
	count := map[string]int{}
	for _, page := range all(t) {
		for _, block := range page.Blocks {
			language, known := languages[block.Language]
			if !known {
				t.Errorf("%s:%d: a block is marked %q; known are %v", page.Path, block.Line, block.Language, slices.Sorted(maps.Keys(languages)))
				continue
			}
			count[block.Language]++
			if language.check != nil {
				t.Run(fmt.Sprintf("%s:%d", page.Path, block.Line), func(t *testing.T) { language.check(t, block.File, block.Text) })
			}
		}
	}
	t.Logf("blocks: %v", count)
}

// TestVariables: the variables that the pages name are Curfew's.
func TestVariables(t *testing.T) {
	known, err := exec.Command(mustBuild(t), "config").Output()
	require.NoError(t, err)
	variable := regexp.MustCompile(`\bCURFEW_[A-Z0-9_]*[A-Z0-9]\b`)
	is := map[string]bool{"CURFEW_URL": true, "CURFEW_CA_FILE": true} // of the commands, which is not among what serve is told
	for _, name := range variable.FindAllString(string(known), -1) {
		is[name], is[name+"_FILE"] = true, true
	}
	require.Greater(t, len(is), 40)
	for _, page := range all(t) {
		if page.Path == "docs/changelog.md" || page.Path == "docs/upgrading.md" { // they name those that are gone, too
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, page.Path))
		require.NoError(t, err)
		for _, name := range variable.FindAllString(string(text), -1) {
			assert.True(t, is[name], "%s names %s, which is not a variable of Curfew's", page.Path, name)
		}
	}
}

// checkYAML also has the files of programs that are here looked at by these.
func checkYAML(t *testing.T, file, text string) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		fields, _ := document.(map[string]any)
		has := func(names ...string) bool {
			return !slices.ContainsFunc(names, func(name string) bool { _, is := fields[name]; return !is })
		}
		switch { // by what only that program's file has
		case has("apiVersion"), has("services"): // integration/kubernetes
		case has("scrape_configs"):
			accepted(t, text, "promtool", "check", "config", "--syntax-only")
		case has("groups"):
			accepted(t, text, "promtool", "check", "rules")
		case has("route", "receivers"):
			accepted(t, text, "amtool", "check-config")
		case has("sinks"), has("rules"), has("deadManSwitch"):
			configured(t, "CURFEW_ALERTS="+saved(t, secretsHere(t, text)))
		case has("queues"):
			configured(t, "CURFEW_WATCH="+saved(t, text), "CURFEW_PRIMARY_URL=amqp://guest:guest@127.0.0.1:5672/", "CURFEW_PRIMARY_API_URL=http://127.0.0.1:15672", "CURFEW_PASSWORD=secret")
		}
	}
}

// secretsHere puts files of the test's own in place of those that a file of alerts names: Curfew reads them.
func secretsHere(t *testing.T, text string) string {
	return regexp.MustCompile(`(File: *"?)(/[\w./-]+)`).ReplaceAllStringFunc(text, func(match string) string {
		name, _, _ := strings.Cut(match, ":")
		secret := "https://example.com/"
		if !strings.Contains(name, "url") {
			secret = "secret"
		}
		return name + ": " + strings.Repeat(`"`, strings.Count(match, `"`)) + saved(t, secret)
	})
}

// saved is a new file with a text.
func saved(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "block.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// accepted has a program look at a block.
func accepted(t *testing.T, text string, command ...string) {
	t.Helper()
	out, err := exec.Command(command[0], append(command[1:], saved(t, text))...).CombinedOutput()
	assert.NoError(t, err, "%s (prometheus and prometheus-alertmanager have these: make deps)\n%s", out, text)
}

// configured has curfew look at its settings.
func configured(t *testing.T, settings ...string) {
	t.Helper()
	cmd := exec.Command(mustBuild(t), "config")
	cmd.Env = append(cleanEnvironment(), settings...)
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

func checkJSON(t *testing.T, _, text string) {
	for decoder := json.NewDecoder(strings.NewReader(text)); ; {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

func checkXML(t *testing.T, _, text string) {
	_, err := elements(text)
	assert.NoError(t, err)
}

func checkINI(t *testing.T, _, text string) {
	for line := range strings.Lines(text) {
		assert.Regexp(t, `^\s*([#;].*|\[[^\]]+\]|[\w.-]+ ?=.*)?$`, strings.TrimSpace(line))
	}
}

func checkDockerfile(t *testing.T, _, text string) {
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		assert.Regexp(t, `^(#.*|(FROM|RUN|COPY|ENV|USER|EXPOSE|VOLUME|ENTRYPOINT|CMD|HEALTHCHECK|WORKDIR|ARG|LABEL) .+)?$`, strings.TrimSpace(line))
	}
}

// checkPromQL holds each line, or what stands between empty lines, to Prometheus's parser.
func checkPromQL(t *testing.T, _, text string) {
	rules := "groups:\n  - name: page\n    rules:\n"
	for i, query := range strings.Split(strings.TrimSpace(text), "\n\n") {
		query = regexp.MustCompile(`(?m)^#.*$`).ReplaceAllString(query, "")
		rules += fmt.Sprintf("      - {record: query%d, expr: %q}\n", i, strings.Join(strings.Fields(query), " "))
	}
	accepted(t, rules, "promtool", "check", "rules")
}
