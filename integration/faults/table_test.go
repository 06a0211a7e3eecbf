package faults

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTable: every scenario is there, says where it is tested or why it is not, and
// every test it names exists. With -v it prints the table.
func TestTable(t *testing.T) {
	tests := testsIn(t, "../..")
	for i, s := range scenarios {
		if want := fmt.Sprint("F", i+1); s.id != want {
			t.Errorf("%s stands where %s should", s.id, want)
		}
		if len(s.tests) == 0 && s.missing == "" {
			t.Errorf("%s has neither a test nor a reason", s.id)
		}
		if len(s.tests) > 0 && s.holds == "" {
			t.Errorf("%s does not say what has to hold", s.id)
		}
		for _, name := range s.tests {
			if !tests[name] {
				t.Errorf("%s: there is no %s", s.id, name)
			}
		}
	}
	if testing.Verbose() {
		t.Logf("\n%s", markdown())
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testsIn finds the tests of the module by their folder and name.
func testsIn(t *testing.T, root string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	check(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		for _, match := range testFunc.FindAllSubmatch(source, -1) {
			found[filepath.ToSlash(folder)+"."+string(match[1])] = true
		}
		return err
	}))
	return found
}

// markdown is the table for people.
func markdown() string {
	var b strings.Builder
	b.WriteString("| | Fault | What holds | Tested by | Not covered |\n|---|---|---|---|---|\n")
	for _, s := range scenarios {
		var tests []string
		for _, name := range s.tests {
			tests = append(tests, "`"+name+"`")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", s.id, s.fault, s.holds, strings.Join(tests, ", "), s.missing)
	}
	return b.String()
}
