package house

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// testFunction matches what `go test` runs.
var testFunction = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)([^a-z]|$)`)

// testKinds may follow the name of what a file tests: which sort of test it has.
var testKinds = []string{"_alloc", "_bench", "_crash", "_fuzz", "_golden", "_internal", "_interop", "_model", "_random"}

// TestTestFiles: a file with tests is named for what it tests. That is a file beside it (FILE_test.go), its package, or another that
// the folder's tests reach through it (PACKAGE_test.go, PACKAGE_FILE_test.go). Files that only help tests may have any name.
func TestTestFiles(t *testing.T) {
	r := newReach(allGoFiles(t))
	for _, f := range allGoFiles(t) {
		if !f.test || within(f.folder, "integration") || !hasTests(f) {
			continue
		}
		name := strings.TrimSuffix(path.Base(f.path), "_test.go")
		if i := strings.LastIndex(name, "_"); i > 0 && slices.Contains(testKinds, name[i:]) && !r.tests(f.folder, name) {
			name = name[:i]
		}
		if !r.tests(f.folder, name) {
			t.Errorf("%s: no %s.go stands beside it, and no package that it reaches is called that: name it for what it tests (docs/internals/contributing.md)", f.path, name)
		}
	}
}

func hasTests(f *goFile) bool {
	return slices.ContainsFunc(f.ast.Decls, func(d ast.Decl) bool {
		fn, is := d.(*ast.FuncDecl)
		return is && fn.Recv == nil && fn.Name.Name != "TestMain" && testFunction.MatchString(fn.Name.Name)
	})
}

// reach knows the files of each folder, and which folders its tests reach.
type reach struct {
	files   map[string][]string // without .go and tests
	imports map[string][]string // of our own folders, those of tests included
	reached map[string][]string
}

func newReach(files []*goFile) *reach {
	r := &reach{files: map[string][]string{}, imports: map[string][]string{}, reached: map[string][]string{}}
	for _, f := range files {
		if !f.test {
			r.files[f.folder] = append(r.files[f.folder], strings.TrimSuffix(path.Base(f.path), ".go"))
		}
		for _, i := range f.ast.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if folder, ours := strings.CutPrefix(imported, module+"/"); err == nil && ours && !slices.Contains(r.imports[f.folder], folder) {
				r.imports[f.folder] = append(r.imports[f.folder], folder)
			}
		}
	}
	return r
}

// tests reports whether a file of tests in folder may be called name.
func (r *reach) tests(folder, name string) bool {
	if slices.Contains(r.files[folder], name) {
		return true
	}
	return slices.ContainsFunc(r.from(folder), func(other string) bool {
		pkg := path.Base(other)
		file, inside := strings.CutPrefix(name, pkg+"_")
		// A file such as delivery/delivery_headers.go needs its package's name once.
		return name == pkg || inside && (slices.Contains(r.files[other], file) || slices.Contains(r.files[other], name))
	})
}

// from lists folder and what it imports, directly or through others.
func (r *reach) from(folder string) []string {
	if _, known := r.reached[folder]; !known {
		all := []string{folder}
		for i := 0; i < len(all); i++ {
			for _, next := range r.imports[all[i]] {
				if !slices.Contains(all, next) {
					all = append(all, next)
				}
			}
		}
		r.reached[folder] = all
	}
	return r.reached[folder]
}
