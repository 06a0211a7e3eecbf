package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/cmd/internal/settings"
	"curfew/monitor/rabbitmq/cluster"
)

// configTables are the variables by group.
func configTables(t *testing.T) string {
	var out strings.Builder
	require.NoError(t, settings.WriteMarkdown(&out))
	return out.String()
}

// alertsExample is deploy/alerts.yaml.
func alertsExample(t *testing.T) string {
	text, err := os.ReadFile(root + "/deploy/alerts.yaml")
	require.NoError(t, err)
	return "```yaml\n" + strings.TrimSpace(string(text)) + "\n```"
}

// watchExample is the example in the comment of cluster.ParseWatchFile, which has to take it.
func watchExample(t *testing.T) string {
	file, err := parser.ParseFile(token.NewFileSet(), root+"/monitor/rabbitmq/cluster/watchfile.go", nil, parser.ParseComments)
	require.NoError(t, err)
	var example []string
	for _, decl := range file.Decls {
		if f, is := decl.(*ast.FuncDecl); is && f.Name.Name == "ParseWatchFile" {
			for line := range strings.SplitSeq(f.Doc.Text(), "\n") {
				if strings.HasPrefix(line, "\t") {
					example = append(example, line[1:])
				}
			}
		}
	}
	text := strings.Join(example, "\n")
	_, err = cluster.ParseWatchFile([]byte(text))
	require.NoError(t, err)
	return "```yaml\n" + text + "\n```"
}
