package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "curfew"

// root is the module's folder as seen from the tests of this package.
const root = "../.."

// goFile is one Go file of the module. Its path is relative to the root.
type goFile struct {
	path   string
	folder string
	lines  int
	test   bool
	ast    *ast.File
}

var fileSet = token.NewFileSet()

// paths lists the files of the tree, hidden folders aside, relative to the root. It is the same list for every test.
var paths = sync.OnceValues(func() (paths []string, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin" || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case entry.Type().IsRegular():
			relative, err := filepath.Rel(root, path)
			paths = append(paths, filepath.ToSlash(relative))
			return err
		}
		return nil
	})
	return paths, err
})

var goFiles = sync.OnceValues(func() (files []*goFile, err error) {
	all, err := paths()
	for _, path := range all {
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(fileSet, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, &goFile{
			path: path, folder: filepath.ToSlash(filepath.Dir(path)), ast: file,
			lines: strings.Count(string(text), "\n"), test: strings.HasSuffix(path, "_test.go"),
		})
	}
	return files, err
})

func allPaths(t *testing.T) []string    { return must(t, paths) }
func allGoFiles(t *testing.T) []*goFile { return must(t, goFiles) }

func must[V any](t *testing.T, get func() (V, error)) V {
	t.Helper()
	v, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
