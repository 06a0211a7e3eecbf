package reference

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadletters"
	"curfew/monitor/incident"
)

var write = flag.Bool("write", false, "write what is not current")

// root is the folder of the repository.
const root = "../../.."

// part is a generated part of a page.
type part struct {
	page, name string // the page below docs; the name in its marks
	text       func(*testing.T) string
}

var parts = []part{
	{"internals/architecture.md", "files", sourceFiles},
	{"reference/command-line.md", "exit codes", exitCodes},
	{"reference/command-line.md", "precedence", precedence},
	{"reference/command-line.md", "commands", commandPages},
	{"reference/configuration.md", "config", configTables},
	{"reference/configuration.md", "alerts", alertsExample},
	{"reference/configuration.md", "watch", watchExample},
	{"reference/metrics.md", "metrics", metricsTable},
	{"reference/metrics.md", "rabbitmq metrics", rabbitmqMetricsTable},
	{"reference/http-api.md", "api", apiPages},
	{"reference/http-api.md", "schemas", schemaPages},
	{"reference/http-api.md", "rabbitmq routes", managementRoutes},
	{"alerts.md", "conditions", conditionsTable},
	{"reference/filters.md", "filter words", filterWords},
	{"benchmarks.md", "bench memory", benchMemory},
	{"benchmarks.md", "bench processor", benchProcessor},
	{"benchmarks.md", "bench start", benchStart},
	{"benchmarks.md", "bench losses", benchLosses},
}

// TestPagesAreCurrent: what is generated stands in its page.
func TestPagesAreCurrent(t *testing.T) {
	for _, one := range parts {
		t.Run(one.page+" "+one.name, func(t *testing.T) {
			path := filepath.Join(root, "docs", filepath.FromSlash(one.page))
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			begin, end := "<!-- "+one.name+" -->\n", "<!-- /"+one.name+" -->"
			before, rest, begun := strings.Cut(string(text), begin)
			old, after, ended := strings.Cut(rest, end)
			require.True(t, begun && ended, "docs/%s has to have %s and %s", one.page, begin, end)
			keep(t, path, old, strings.TrimSpace(one.text(t))+"\n", func(text string) string { return before + begin + text + end + after })
		})
	}
}

// keep compares what is in a file with what should be, or with -write writes what whole makes of it.
func keep(t *testing.T, path, old, text string, whole func(string) string) {
	t.Helper()
	if !*write {
		assert.Equal(t, text, old, "%s is not current: run `make docs`", strings.TrimPrefix(path, root+"/"))
	} else if old != text {
		require.NoError(t, os.WriteFile(path, []byte(whole(text)), 0o644))
	}
}

// table is a table in Markdown. Its cells may have any text.
type table struct{ strings.Builder }

func newTable(columns ...string) *table {
	t := &table{}
	t.row(columns...)
	t.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
	return t
}

var cell = strings.NewReplacer("|", `\|`, "\n", " ")

func (t *table) row(cells ...string) {
	for _, text := range cells {
		t.WriteString("| " + cell.Replace(strings.TrimSpace(text)) + " ")
	}
	t.WriteString("|\n")
}

// filterWords is the table of what a filter of dead letters may have.
func filterWords(*testing.T) string {
	words := newTable("Word", "Is", "Meaning", "Example")
	row := func(w deadletters.Word) { words.row(code(w.Name), w.Kind, w.Text, code(w.Example)) }
	for _, f := range deadletters.Fields {
		row(f.Word)
	}
	for _, w := range slices.Concat(deadletters.Functions, deadletters.Operators) {
		row(w)
	}
	return words.String()
}

// conditionsTable is the table of what can be wrong, with the way to its runbook.
func conditionsTable(*testing.T) string {
	conditions := newTable("Condition", "Level", "What is wrong", "Affects")
	for _, c := range incident.Conditions {
		conditions.row(fmt.Sprintf("[%s](../deploy/runbooks/%s)", code(c.Name), incident.Runbook(c.Alertname())), string(c.Level), c.What, c.Whom)
	}
	return conditions.String()
}

// code is a text as Markdown's code; "" stays empty.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
