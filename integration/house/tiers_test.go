package house

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTiers holds the Makefile's lists of tests to the tests: each name exists, and each test of ./integration that may run the broker
// within its own process is one of those that the race detector watches.
func TestTiers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string][]string{}
	for _, match := range regexp.MustCompile(`(?m)^([A-Z_]+) = \^Test\(([\w|]+)\)\$\$$`).FindAllStringSubmatch(string(text), -1) {
		for name := range strings.SplitSeq(match[2], "|") {
			listed[match[1]] = append(listed[match[1]], "Test"+name)
		}
	}
	if len(listed) != 3 {
		t.Fatalf("the Makefile has the lists %v, not LONG, IN_PROCESS and PRIVILEGED", listed)
	}
	exists := map[string]bool{}
	for _, f := range allGoFiles(t) {
		for _, name := range testsOf(f) {
			exists[name] = true
			if runsBroker(f) && f.folder == "integration" && !slices.Contains(listed["IN_PROCESS"], name) {
				t.Errorf("%s: %s may run the broker within the test, and IN_PROCESS of the Makefile does not have it", f.path, name)
			}
		}
	}
	for list, names := range listed {
		for _, name := range names {
			if !exists[name] {
				t.Errorf("%s of the Makefile has %s, which does not exist", list, name)
			}
		}
	}
}

func testsOf(f *goFile) (names []string) {
	if !f.test {
		return nil
	}
	for _, decl := range f.ast.Decls {
		if fn, is := decl.(*ast.FuncDecl); is && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain" {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}

// runsBroker reports whether a file imports what starts a broker, or testing/synctest, in whose bubbles one runs.
func runsBroker(f *goFile) bool {
	return slices.ContainsFunc(f.ast.Imports, func(spec *ast.ImportSpec) bool {
		switch strings.Trim(spec.Path.Value, `"`) {
		case module + "/broker", module + "/broker/server", module + "/monitor", "testing/synctest":
			return true
		}
		return false
	})
}
