package house

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// environmentReaders are the functions that read the environment, by package.
var environmentReaders = map[string][]string{
	"os":      {"Getenv", "LookupEnv", "Environ", "ExpandEnv"},
	"syscall": {"Getenv", "Environ"},
}

// TestOnlyCommandsReadTheEnvironment: packages take an Options struct. What tests are made of is left out.
func TestOnlyCommandsReadTheEnvironment(t *testing.T) {
	for _, f := range allGoFiles(t) {
		if f.test || within(f.folder, "cmd") || within(f.folder, "deploy/examples") || isHarness(f.folder) {
			continue
		}
		for _, spec := range f.ast.Imports {
			if strings.Contains(spec.Path.Value, "envconfig") {
				t.Errorf("%s imports %s: only cmd reads the environment", f.path, spec.Path.Value)
			}
		}
		for _, name := range environmentReads(f.ast) {
			t.Errorf("%s calls %s: only cmd reads the environment", f.path, name)
		}
	}
}

// environmentReads lists the uses of environmentReaders in a file.
func environmentReads(file *ast.File) (names []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, is := n.(*ast.SelectorExpr); is {
			if x, is := selector.X.(*ast.Ident); is && slices.Contains(environmentReaders[x.Name], selector.Sel.Name) {
				names = append(names, x.Name+"."+selector.Sel.Name)
			}
		}
		return true
	})
	return names
}
